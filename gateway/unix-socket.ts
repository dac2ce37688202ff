import { once } from 'node:events';
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';

/** The path exists and must not be removed. */
export class SocketPathError extends Error {
  override readonly name = 'SocketPathError';
}

/** Removes the socket that a killed process has left. Throws when a process listens on it, or it is no socket. */
export async function claimSocketPath(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false) {
    throw new SocketPathError(`${path} is not a socket`); // a connection to a file is refused as one to a dead socket is
  }
  if (await answers(path)) throw new SocketPathError(`${path} is in use by another process`);
  rmSync(path, { force: true });
}

async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return false;
    throw error;
  } finally {
    socket.destroy();
  }
}
