import { getSystemErrorMessage } from 'node:util';

import { ApiError, ConnectionError } from '@gantry/client/connection.ts';

/** One line for the user: the engine's message, or the reason why there is none. */
export function messageOf(error: unknown, address: string): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof ConnectionError) return unreachable(error, address);
  const { path } = error as NodeJS.ErrnoException;
  return path === undefined ? reasonOf(error) : `${path}: ${reasonOf(error)}`;
}

/** Why something failed, without the names of the system's calls and errors. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof SyntaxError) return 'it is not JSON';
  const { errno, syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && errno !== undefined && errno < 0 ? getSystemErrorMessage(errno) : error.message;
}

function unreachable({ code, message }: ConnectionError, address: string): string {
  if (code === 'EACCES') return `permission denied for ${address}: be root, or in the socket's group`;
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `cannot connect to the engine at ${address}: is "gantry daemon" running?`;
  }
  return `the connection with the engine at ${address} failed: ${message}`;
}
