import { once } from 'node:events';
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';

/** The path is taken by something that must not be removed. */
export class SocketPathError extends Error {
  override readonly name = 'SocketPathError';
}

/** Removes what a killed process has left at this path. Throws when somebody listens there, or it is no socket. */
export async function claimSocketPath(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false) {
    throw new SocketPathError(`${path}: this is no socket`); // a connection to a file is refused as one to a dead socket is
  }
  if (await answers(path)) throw new SocketPathError(`${path}: somebody listens there already`);
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
