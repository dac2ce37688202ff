import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

import type { ReusedBuffers } from './reused-buffers.ts';

/** The shim died without a status: it was killed, or the machine was. */
export class ShimLost extends Error {
  override readonly name = 'ShimLost';
}

/** Its shim is of a later daemon, which alone can speak with it. */
export class ForeignShim extends Error {
  override readonly name = 'ForeignShim';
}

/** A connection whose greeting was read: it is paused, and what came behind the greeting is still in it. */
export type Greeted = Readonly<{ socket: Socket; pid: number }>;

const NEWLINE = 0x0a;

/**
 * What is said on the connections, see README.md. The shims of an earlier daemon live on under a new one: a daemon with a
 * higher version must go on speaking this one, as the shim answers with its own when it is offered a later one.
 */
const PROTOCOL_VERSION = 1;

/**
 * Opens a connection of the named kind to the shim in this folder. Throws `ENOENT`, `ECONNREFUSED` or `ShimLost` when
 * none is there.
 *
 * The socket is addressed through a descriptor of its folder, because a socket's path is limited to 107 bytes.
 */
export async function openConnection(directory: string, kind: string, buffers?: ReusedBuffers): Promise<Greeted> {
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
  return await greeting(socket);
}

/** Waits for `ok VERSION PID`. Throws what the shim says instead, or `ShimLost` when it says nothing. */
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
