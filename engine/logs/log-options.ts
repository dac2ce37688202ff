import { EngineError } from '../lib/errors.ts';
import { bytesOf } from '../lib/notations/bytes-of.ts';
import { parsePattern } from '../lib/notations/pattern.ts';
import { CACHE_OPTIONS, cacheIsDisabled } from './cache-options.ts';
import type { LogOptions } from './driver.ts';
import { logDriver } from './drivers.ts';
import type { LogConfig } from './logged-container.ts';

type Defaults = Readonly<{ logDriver: string; logOpts: LogOptions }>;

/** The options of every driver: for a slow receiver, and for the local copy. */
const OF_EVERY_DRIVER = ['mode', 'max-buffer-size', ...CACHE_OPTIONS];

/**
 * The log driver and its options, completed by those of the daemon where the client names its driver or none. Throws
 * `invalid`.
 */
export function logConfigOf({ LogConfig }: { LogConfig?: Partial<LogConfig> }, defaults: Defaults): LogConfig {
  const { Type = '', Config: given = {} } = LogConfig ?? {};
  const name = Type === '' ? defaults.logDriver : Type;
  const inherited = Object.entries(defaults.logOpts).filter(
    ([key]) => name === defaults.logDriver || CACHE_OPTIONS.includes(key),
  );
  const Config = { ...Object.fromEntries(inherited), ...given };
  checkOptions(name, Config);
  return { Type: name, Config };
}

/** In the order in which dockerd looks at them, which takes any options with the driver `none`. */
function checkOptions(name: string, options: LogOptions): void {
  if (name === 'none') return;
  checkDelivery(options);
  cacheIsDisabled(options);
  const driver = logDriver(name);
  for (const key of Object.keys(options)) {
    if (driver.options.includes(key) || OF_EVERY_DRIVER.includes(key)) continue;
    const unknown = driver.unknown?.(key) ?? `unknown log opt '${key}' for ${driver.name} log driver`;
    throw new EngineError('invalid', unknown);
  }
  for (const key of ['env-regex', 'labels-regex']) checkPattern(key, options[key]);
  driver.check?.(options);
}

/** For all drivers with this option: dockerd checks it only at the start, and never for syslog, which ignores it. */
function checkPattern(option: string, pattern = ''): void {
  if (parsePattern(pattern) === undefined) throw new EngineError('invalid', `invalid ${option}: '${pattern}'`);
}

function checkDelivery(options: LogOptions): void {
  const { mode = '', 'max-buffer-size': size } = options;
  if (!['', 'blocking', 'non-blocking'].includes(mode)) {
    throw new EngineError('invalid', `logger: logging mode not supported: ${mode}`);
  }
  if (size === undefined) return;
  if (mode !== 'non-blocking') {
    throw new EngineError('invalid', "logger: max-buffer-size option is only supported with 'mode=non-blocking'");
  }
  checkMaxBuffer(size);
}

function checkMaxBuffer(size: string): void {
  try {
    bytesOf('max-buffer-size', size);
  } catch (error) {
    throw new EngineError('invalid', `error parsing option max-buffer-size: invalid size: '${size}'`, { cause: error });
  }
}
