/**
 * The exit codes. 125 is an invalid command line of any command, or a container that `run` cannot create; 126 and 127
 * are programs that cannot be run; 1 is everything else.
 */
export const EXIT = { usage: 125, engineFailed: 125, cannotExecute: 126, notFound: 127, failed: 1 } as const;

/** Ends the command line with this code; a message goes to stderr. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number, message = '') {
    super(message);
    this.code = code;
  }
}

/** An invalid command line; the message is followed by a hint to the help. */
export class UsageError extends Exit {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}
