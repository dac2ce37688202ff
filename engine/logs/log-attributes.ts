import { EngineError } from '../lib/errors.ts';
import { parsePattern } from '../lib/notations/pattern.ts';
import type { LoggedContainer } from './logged-container.ts';
import { sortedByKey, tagOf } from './tag.ts';

/** The shim's limit. */
const LIMIT_BYTES = 100 * 1024;

/** The attributes in every line of the log, byte for byte as in dockerd; empty without any. */
export function attributesText(container: LoggedContainer): string {
  const sorted = Object.entries(logAttributes(container)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (sorted.length === 0) return '';
  const text = `{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
  return text.replaceAll(/[<>&\u2028\u2029]/g, escapedAsInGo);
}

function escapedAsInGo(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Refused when the container is created, and not each time it starts. Throws `invalid`. */
export function checkAttributes(container: LoggedContainer): void {
  if (Buffer.byteLength(attributesText(container)) <= LIMIT_BYTES) return;
  throw new EngineError('invalid', 'the labels and variables that the log options choose are longer than 100 KB');
}

/** The attributes of each line: `extraAttributes`, and the `tag` if one is set. */
export function logAttributes(container: LoggedContainer): Record<string, string> {
  const tag = container.hostConfig.LogConfig.Config['tag'] ? tagOf(container, '') : '';
  return { ...extraAttributes(container), ...(tag !== '' && { tag }) };
}

/** The labels and variables that the log options `labels`, `env` and their `-regex` forms choose, sorted as Go's maps are. */
export function extraAttributes({ config, hostConfig }: LoggedContainer): Record<string, string> {
  const options = hostConfig.LogConfig.Config;
  const isLabel = choice(options['labels'], options['labels-regex']);
  const isVariable = choice(options['env'], options['env-regex']);
  const attributes: Record<string, string> = {};
  if (isLabel !== undefined)
    for (const [key, value] of Object.entries(config.Labels ?? {})) if (isLabel(key)) attributes[key] = value;
  if (isVariable !== undefined) {
    for (const variable of config.Env) {
      const [key = '', ...value] = variable.split('=');
      if (isVariable(key)) attributes[key] = value.join('=');
    }
  }
  return sortedByKey(attributes);
}

/** Undefined without any option: nothing is chosen then, not even an empty key. */
function choice(names = '', pattern = ''): ((key: string) => boolean) | undefined {
  if (names === '' && pattern === '') return undefined;
  const wanted = new Set(names === '' ? [] : names.split(','));
  const isWanted = pattern === '' ? undefined : parsePattern(pattern);
  return (key) => wanted.has(key) || isWanted?.(key) === true;
}
