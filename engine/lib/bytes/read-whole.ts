import { finished, type Readable } from 'node:stream';

import { GrowingBuffer } from './growing-buffer.ts';

/**
 * Reads a stream to its end. Returns undefined if it has more than `maxBytes`; it is paused then, and the caller's to end.
 *
 * By events: an iteration keeps the pieces until it takes them, and each of a million pieces of one byte costs a hundred.
 */
export async function readWhole(stream: Readable, maxBytes: number): Promise<Buffer | undefined> {
  const read = new GrowingBuffer();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | undefined>();
  const take = (piece: Buffer): void => {
    read.push(piece);
    if (read.length <= maxBytes) return;
    stream.off('data', take).pause();
    resolve(undefined);
  };
  stream.on('data', take);
  finished(stream, { writable: false }, (error) => (error ? reject(error) : resolve(read.bytes)));
  return await promise;
}
