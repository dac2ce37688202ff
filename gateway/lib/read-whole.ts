import { finished, type Readable } from 'node:stream';

/** Reads a stream to its end. Returns undefined if it has more than `maxBytes`; it is paused then, and the caller's to end. */
export async function readWhole(stream: Readable, maxBytes: number): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const take = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes <= maxBytes) return void pieces.push(piece);
    stream.off('data', take).pause();
    resolve(undefined);
  };
  stream.on('data', take);
  finished(stream, { writable: false }, (error) => {
    if (error) reject(error);
    else resolve(Buffer.concat(pieces).toString());
  });
  return await promise;
}
