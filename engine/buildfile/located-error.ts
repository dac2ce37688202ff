import { EngineError } from '../lib/errors.ts';

/** A failure at a place in a Buildfile: the first and the last line of it, from 1. */
export class LocatedError extends EngineError {
  readonly number: number;
  readonly end: number;

  constructor(place: Readonly<{ number: number; end: number }>, message: string, cause?: EngineError) {
    super(cause?.kind ?? 'invalid', message, { cause });
    this.number = place.number;
    this.end = place.end;
  }
}

/** Adds the place to a failure that has none. */
export function atPlace<T>(place: Readonly<{ number: number; end: number }>, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof EngineError) || error instanceof LocatedError) throw error;
    throw new LocatedError(place, error.message, error);
  }
}
