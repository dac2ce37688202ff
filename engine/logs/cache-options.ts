import { EngineError } from '../lib/errors.ts';
import { bytesOf } from '../lib/notations/bytes-of.ts';
import type { LogOptions } from './driver.ts';
import { isTrue } from './truth.ts';

/** For drivers with a receiver: what stays here to be read back. Other drivers take them too, and need none. */
export const CACHE_OPTIONS: readonly string[] = [
  'cache-disabled',
  'cache-max-size',
  'cache-max-file',
  'cache-compress',
];

/** As the driver `local` keeps it. */
const DEFAULT_BYTES = 20 * 1024 * 1024;
const DEFAULT_FILES = 5;

/** One buffer is for what is not delivered yet and for what clients read back. Throws `invalid`. */
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
    return isTrue(written);
  } catch {
    throw new EngineError('invalid', `invalid value for option cache-disabled: ${written}`);
  }
}
