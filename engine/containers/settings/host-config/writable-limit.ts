import { EngineError } from '../../../lib/errors.ts';
import { bytesOf } from '../../../lib/notations/bytes-of.ts';
import type { HostConfig } from './host-config-schema.ts';

/** The most bytes that the container's own files may take, of `StorageOpt`. Throws `invalid`, and `failed` for an unknown option. */
export function writableLimit(options: HostConfig['StorageOpt']): number | undefined {
  const { size, ...others } = options ?? {};
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new EngineError('failed', `Unknown option ${unknown}`);
  if (size === undefined) return undefined;
  const bytes = bytesOf('size', size);
  if (bytes <= 0) throw new EngineError('invalid', `invalid size: '${size}'`);
  return bytes;
}
