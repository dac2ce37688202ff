import { EngineError } from '../lib/errors.ts';
import { bytesOf } from '../lib/notations/bytes-of.ts';
import { booleanOption } from './boolean-option.ts';
import type { LogOptions } from './driver.ts';

/** For drivers with a receiver: the local copy that is read back. Other drivers accept and ignore them. */
export const CACHE_OPTIONS: readonly string[] = [
  'cache-disabled',
  'cache-max-size',
  'cache-max-file',
  'cache-compress',
];

/** The defaults of the driver `local`. */
const DEFAULT_BYTES = 20 * 1024 * 1024;
const DEFAULT_FILES = 5;

/** One buffer serves the lines that are not delivered yet and those that clients read back. Throws `invalid`. */
export function bufferSize(options: LogOptions): { maxBytes: number; maxFiles: number } {
  const {
    'cache-max-size': size,
    'cache-max-file': files = String(DEFAULT_FILES),
    'max-buffer-size': wanted,
  } = options;
  if (!/^[1-9]\d{0,8}$/.test(files)) throw new EngineError('invalid', `invalid value for cache-max-file: ${files}`);
  const maxFiles = Number(files);
  const maxBytes = size === undefined ? DEFAULT_BYTES : bytesOf('cache-max-size', size);
  if (maxBytes === 0) throw new EngineError('invalid', 'cache-max-size must be a positive number');
  const least = wanted === undefined ? 0 : Math.ceil(bytesOf('max-buffer-size', wanted) / maxFiles);
  return { maxBytes: Math.max(maxBytes, least), maxFiles };
}

export function cacheIsDisabled({ 'cache-disabled': written }: LogOptions): boolean {
  try {
    return booleanOption(written);
  } catch {
    throw new EngineError('invalid', `invalid value for option cache-disabled: ${written}`);
  }
}
