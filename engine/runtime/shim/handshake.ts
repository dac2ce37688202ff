import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

import { EngineError, hasCode } from '../../lib/errors.ts';
import type { ReusedBuffers } from '../reused-buffers.ts';

/** The shim died without a status: it was killed, or the machine stopped. */
export class ShimLost extends Error {
  override readonly name = 'ShimLost';
}

/** The shim is of a later daemon, and this daemon does not speak its protocol. */
export class ForeignShim extends Error {
  override readonly name = 'ForeignShim';
}

/** A connection after the greeting: paused, with the bytes after the greeting still unread. */
export type Greeted = Readonly<{ socket: Socket; pid: number }>;

const NEWLINE = 0x0a;

/**
 * The version of the protocol in README.md. Shims outlive their daemon, so a daemon with a later version must still
 * speak this one; a shim that is offered a later version answers with its own.
 */
const PROTOCOL_VERSION = 1;

/** There is no shim, none that listens, or one that ended before it took the connection. */
const GONE = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET'];

/**
 * Opens a connection of the given kind to the shim in this folder. Throws `ShimLost` without a shim, and where it ends
 * meanwhile.
 *
 * The socket is addressed through a descriptor of its folder, because a socket's path is limited to 107 bytes.
 */
export async function openConnection(directory: string, kind: string, buffers?: ReusedBuffers): Promise<Greeted> {
  try {
    return await greeting(await connected(directory, kind, buffers));
  } catch (error) {
    if (GONE.some((code) => hasCode(error, code))) throw new ShimLost('the shim has gone', { cause: error });
    throw error;
  }
}

async function connected(directory: string, kind: string, buffers?: ReusedBuffers): Promise<Socket> {
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const onread = buffers?.bind(() => socket);
  const path = `/proc/self/fd/${folder}/shim.sock`;
  const socket: Socket = connect({ path, allowHalfOpen: true, ...(onread && { onread }) });
  try {
    await once(socket, 'connect');
  } finally {
    closeSync(folder);
  }
  socket.write(`GANTRY ${PROTOCOL_VERSION} ${kind}\n`);
  return socket;
}

/** Waits for `ok VERSION PID`. Throws the shim's refusal, or `ShimLost` if the connection ends. */
export async function greeting(socket: Socket): Promise<Greeted> {
  const line = Promise.withResolvers<string>();
  let said = Buffer.alloc(0);
  const lost = (): void => line.reject(new ShimLost('the shim has gone'));
  const read = (chunk: Buffer): void => {
    said = Buffer.concat([said, chunk]);
    const end = said.indexOf(NEWLINE);
    if (end === -1) return;
    socket.off('data', read).pause();
    if (end + 1 < said.length) socket.unshift(said.subarray(end + 1));
    line.resolve(said.toString('utf8', 0, end));
  };
  socket.on('data', read).once('end', lost).once('close', lost).once('error', lost);
  try {
    const answer = await line.promise;
    const [word, version, pid] = answer.split(' ');
    if (word === 'missing') {
      throw new EngineError(
        'notFound',
        `cannot access path ${answer.slice('missing '.length)}: no such file or directory`,
      );
    }
    if (word !== 'ok') throw new Error(`the shim refused: ${answer.replace(/^refused /, '')}`);
    if (Number(version) !== PROTOCOL_VERSION) {
      throw new ForeignShim(
        `the shim ${pid} speaks version ${version} of its protocol, this daemon ${PROTOCOL_VERSION}`,
      );
    }
    return { socket, pid: Number(pid) };
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    socket.off('end', lost).off('close', lost).off('error', lost);
  }
}
