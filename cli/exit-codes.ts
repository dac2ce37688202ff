import { ApiError } from '@gantry/client/connection.ts';

/** The exit codes that docker's users know. */
export const EXIT = { engineFailed: 125, cannotExecute: 126, notFound: 127, usage: 125, failed: 1 } as const;

/** Ends the command line with this code; the message, when there is one, goes to stderr. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number, message = '') {
    super(message);
    this.code = code;
  }
}

/** One line for a person: what the engine said, or that it does not answer. */
export function describe(error: unknown, host: string): string {
  if (error instanceof ApiError) return `Error response from daemon: ${error.message}`;
  if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ECONNREFUSED')) {
    return `Cannot connect to the engine at ${host}. Is "gantry daemon" running?`;
  }
  if (error instanceof Error && 'code' in error && error.code === 'EACCES') {
    return `Permission denied for ${host}: be root, or in the socket's group.`;
  }
  return error instanceof Error ? error.message : String(error);
}
