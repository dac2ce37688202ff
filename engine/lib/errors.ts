/** What went wrong, in the words of the domain; `http/errors.ts` holds the only table from kind to HTTP status. */
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
 * An error that a caller is meant to see: its message goes to the client as it is.
 *
 * Everything else that is thrown is a bug or the machine's trouble, and is answered with 500.
 */
export class EngineError extends Error {
  readonly kind: ErrorKind;

  constructor(kind: ErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineError';
    this.kind = kind;
  }
}

/** Throws `invalid` where it is so. */
export function refuseIf(wrong: boolean, message: string): void {
  if (wrong) throw new EngineError('invalid', message);
}

/** Whether `error` is a system error with this code, such as `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
