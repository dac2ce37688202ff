/** The kinds of errors, in the words of the domain; `http/errors.ts` holds the only table from kind to HTTP status. */
export type ErrorKind =
  | 'invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'notFound'
  | 'conflict'
  | 'notModified'
  | 'notInCluster'
  | 'tooLarge'
  | 'notImplemented'
  | 'failed'
  | 'unavailable';

/**
 * An error whose message goes to the client unchanged.
 *
 * Any other error is a bug or a failure of the machine, and is answered with 500.
 */
export class EngineError extends Error {
  readonly kind: ErrorKind;

  constructor(kind: ErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineError';
    this.kind = kind;
  }
}

/** Throws `invalid` if `wrong`. */
export function refuseIf(wrong: boolean, message: string): void {
  if (wrong) throw new EngineError('invalid', message);
}

/** Whether `error` is a system error with this code, such as `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
