import { EngineError } from '../../lib/errors.ts';

type Given<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** What a client wrote: without what is missing, null, or as empty as if it were missing. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isThere(value))) as Given<T>;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** Throws `invalid`, in the words that a manager of dockerd has for a bad argument. */
export function refuseArgument(isBad: boolean, reason: string): void {
  if (isBad) throw new EngineError('invalid', `rpc error: code = InvalidArgument desc = ${reason}`);
}
