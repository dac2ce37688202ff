import { EngineError } from '../../lib/errors.ts';

/** Throws `invalid`, in the words of a dockerd manager for a bad argument. */
export function refuseArgument(isBad: boolean, reason: string): void {
  if (isBad) throw new EngineError('invalid', `rpc error: code = InvalidArgument desc = ${reason}`);
}
