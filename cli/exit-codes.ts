/**
 * The exit codes. 125 is a command line that cannot be read, whatever the command, and a container that `run` cannot
 * make; 126 and 127 are programs that cannot be run; 1 is everything else.
 */
export const EXIT = { usage: 125, engineFailed: 125, cannotExecute: 126, notFound: 127, failed: 1 } as const;

/** Ends the command line with this code; the message, when there is one, goes to stderr. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number, message = '') {
    super(message);
    this.code = code;
  }
}

/** What was written cannot be read: the help is named with the message. */
export class UsageError extends Exit {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}
