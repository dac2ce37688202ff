import type { HostConfig, HostConfigBody } from '../containers/settings/host-config-schema.ts';
import { EngineError } from '../lib/errors.ts';
import { parsePattern } from '../lib/pattern.ts';
import { TAG_FIELDS } from './log-attributes.ts';

type Options = Readonly<Record<string, string>>;
type Defaults = Readonly<{ logDriver: string; logOpts: Options }>;

const KNOWN: Readonly<Record<string, readonly string[]>> = {
  none: [],
  'json-file': ['max-size', 'max-file', 'compress', 'labels', 'labels-regex', 'env', 'env-regex', 'tag'],
};
/** Of every driver: what happens when it is slow. Ours never is, so both modes are the same. */
const DELIVERY = ['mode', 'max-buffer-size'];

const SIZE = /^(?<number>\d+(?:\.\d+)?) ?(?<unit>[kmgtp]?)(?:i?b)?$/i;
const UNITS = ['', 'k', 'm', 'g', 't', 'p'];

/** The log driver and its options, those of the daemon where the client names no driver. Throws `invalid`. */
export function logConfigOf({ LogConfig }: HostConfigBody, defaults: Defaults): HostConfig['LogConfig'] {
  const named = LogConfig?.Type ?? '';
  const Type = named === '' ? defaults.logDriver : named;
  const Config = named === '' ? { ...defaults.logOpts, ...LogConfig?.Config } : (LogConfig?.Config ?? {});
  const known = KNOWN[Type];
  if (known === undefined) throw new EngineError('invalid', `logger: no log driver named '${Type}' is registered`);
  for (const key of Object.keys(Config)) {
    if (known.includes(key) || DELIVERY.includes(key)) continue;
    throw new EngineError('invalid', `unknown log opt '${key}' for ${Type} log driver`);
  }
  checkDelivery(Config);
  if (Type === 'json-file') checkJsonFile(Config);
  return { Type, Config };
}

/** `max-size` in bytes (0: no limit) and `max-file` of a json-file log. Throws `invalid`. */
export function logSizes(options: Options): { maxBytes: number; maxFiles: number } {
  const { 'max-size': size, 'max-file': files = '1' } = options;
  const maxBytes = size === undefined ? 0 : bytesOf('max-size', size);
  if (size !== undefined && maxBytes === 0) throw new EngineError('invalid', 'max-size must be a positive number');
  if (!/^\d+$/.test(files)) throw new EngineError('invalid', `invalid max-file: '${files}'`);
  if (Number(files) < 1) throw new EngineError('invalid', 'max-file cannot be less than 1');
  return { maxBytes, maxFiles: Number(files) };
}

function checkDelivery(options: Options): void {
  const { mode = '', 'max-buffer-size': size } = options;
  if (!['', 'blocking', 'non-blocking'].includes(mode)) {
    throw new EngineError('invalid', `logger: logging mode not supported: ${mode}`);
  }
  if (size === undefined) return;
  if (mode !== 'non-blocking') {
    throw new EngineError('invalid', "logger: max-buffer-size option is only supported with 'mode=non-blocking'");
  }
  bytesOf('max-buffer-size', size);
}

/** Refused now, and not each time the container starts or the log is read. */
function checkJsonFile(options: Options): void {
  const { maxBytes, maxFiles } = logSizes(options);
  const compress = options['compress'] ?? 'false';
  if (!/^(1|0|t|f|true|false)$/i.test(compress)) throw new EngineError('invalid', `invalid compress: '${compress}'`);
  if (/^[1t]/i.test(compress) && (maxFiles < 2 || maxBytes === 0)) {
    throw new EngineError('invalid', 'compress cannot be true when max-file is less than 2 or max-size is not set');
  }
  for (const key of ['env-regex', 'labels-regex']) checkPattern(key, options[key]);
  checkTag(options['tag']);
}

function checkPattern(option: string, pattern = ''): void {
  if (parsePattern(pattern) === undefined) throw new EngineError('invalid', `invalid ${option}: '${pattern}'`);
}

function checkTag(tag = ''): void {
  for (const [written] of tag.matchAll(/\{\{[^]*?(\}\}|$)/g)) {
    const field = /^\{\{\s*\.(\w+)\s*\}\}$/.exec(written)?.[1];
    if (field === undefined || !TAG_FIELDS.includes(field)) {
      throw new EngineError('invalid', `invalid tag: '${written}' is none of .${TAG_FIELDS.join(', .')}`);
    }
  }
}

function bytesOf(option: string, text: string): number {
  const match = SIZE.exec(text)?.groups;
  if (match === undefined) throw new EngineError('invalid', `invalid ${option}: '${text}'`);
  return Math.trunc(Number(match.number) * 1024 ** UNITS.indexOf((match.unit ?? '').toLowerCase()));
}
