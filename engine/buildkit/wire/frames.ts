import type { Http2Stream } from 'node:http2';

import { GrpcError, StatusCode } from './status.ts';

/** A byte that tells compression, and four of the length. */
const HEAD_BYTES = 5;
/** As clients and servers of gRPC have it. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Memory of all messages that have not arrived whole, and of requests under way, of all clients together. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Memory of a piece besides its bytes. */
const PIECE_BYTES = 256;
/** Memory of a decoded message: fields take a multiple of their bytes, but a message has a limited number of them. */
const [DECODED_FACTOR, MAX_FIELDS_BYTES] = [20, 1024 * 1024];

let heldBytes = 0;

function hold(bytes: number): void {
  heldBytes += bytes;
  if (heldBytes <= MAX_HELD_BYTES) return;
  throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, 'too many messages have not arrived whole, or wait for an answer');
}

/** Memory of the messages that a call works on. */
export class HeldMessages implements Disposable {
  #bytes = 0;

  /** Throws `GrpcError` when all clients together hold too much. */
  add(message: Uint8Array): void {
    const bytes = Math.min(message.length * DECODED_FACTOR, message.length + MAX_FIELDS_BYTES);
    this.#bytes += bytes;
    hold(bytes);
  }

  [Symbol.dispose](): void {
    this.release();
  }

  release(): void {
    heldBytes -= this.#bytes;
    this.#bytes = 0;
  }
}

/** The messages of a stream, one after the other. Throws for a longer one, a compressed one, and one that is cut off. */
export async function* messagesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const unfinished = new Unfinished();
  let wanted = HEAD_BYTES;
  try {
    for await (const piece of stream) {
      unfinished.add(piece as Buffer);
      if (unfinished.bytes < wanted) continue;
      let all = unfinished.take();
      while (all.length >= (wanted = bytesOfFirst(all))) {
        yield all.subarray(HEAD_BYTES, wanted);
        all = all.subarray(wanted);
      }
      if (all.length > 0) unfinished.add(all);
    }
    if (unfinished.bytes > 0) throw new GrpcError(StatusCode.INTERNAL, 'the stream ends inside of a message');
  } finally {
    unfinished.take();
  }
}

/** The pieces of a message so far. */
class Unfinished {
  #pieces: Buffer[] = [];
  bytes = 0;

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.bytes += piece.length;
    hold(piece.length + PIECE_BYTES);
  }

  take(): Buffer {
    const [pieces, { bytes }] = [this.#pieces, this];
    heldBytes -= bytes + pieces.length * PIECE_BYTES;
    [this.#pieces, this.bytes] = [[], 0];
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytes);
  }
}

/** The head and the message, or the head alone if it is not there yet. */
function bytesOfFirst(all: Buffer): number {
  if (all.length < HEAD_BYTES) return HEAD_BYTES;
  if (all[0] !== 0) throw new GrpcError(StatusCode.UNIMPLEMENTED, 'compressed messages are not understood');
  const length = all.readUInt32BE(1);
  if (length > MAX_MESSAGE_BYTES) {
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `a message of ${length} bytes is longer than ${MAX_MESSAGE_BYTES}`,
    );
  }
  return HEAD_BYTES + length;
}

/** Writes a message, and waits until the other side takes it. */
export async function writeMessage(stream: Http2Stream, message: Uint8Array): Promise<void> {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  if (stream.destroyed || stream.writableEnded) throw new GrpcError(StatusCode.CANCELLED, 'the stream has ended');
  if (stream.write(Buffer.concat([head, message]))) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.once('drain', resolve).once('close', resolve);
  if (stream.destroyed) resolve();
  await promise;
  stream.off('drain', resolve).off('close', resolve);
  if (stream.destroyed) throw new GrpcError(StatusCode.CANCELLED, 'the stream has ended');
}
