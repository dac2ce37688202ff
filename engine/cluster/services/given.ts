import { EngineError } from '../../lib/errors.ts';

type Given<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Returns the fields without missing, null, empty and false values. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isThere(value))) as Given<T>;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** Throws `invalid`, in the words of a dockerd manager for a bad argument. */
export function refuseArgument(isBad: boolean, reason: string): void {
  if (isBad) throw new EngineError('invalid', `rpc error: code = InvalidArgument desc = ${reason}`);
}
