import { ApiError, ConnectionError } from '@gantry/client/connection.ts';

/** One line for the user: the engine's message, or the reason why there is none. */
export function messageOf(error: unknown, address: string): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof ConnectionError) return unreachable(error, address);
  return error instanceof Error ? error.message : String(error);
}

function unreachable({ code, message }: ConnectionError, address: string): string {
  if (code === 'EACCES') return `permission denied for ${address}: be root, or in the socket's group`;
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `cannot connect to the engine at ${address}: is "gantry daemon" running?`;
  }
  return `the connection with the engine at ${address} failed: ${message}`;
}
