import { Transform, type Readable, type TransformCallback } from 'node:stream';

type OutputStream = 'stdout' | 'stderr';
const HEADER_BYTES = 8;

/** Splits a stream with 8-byte frame headers, and passes each piece to `write`. */
export class FrameReader extends Transform {
  readonly #write: (stream: OutputStream, piece: Buffer) => void;
  #header = Buffer.alloc(0);
  #stream: OutputStream = 'stdout';
  #left = 0;

  constructor(write: (stream: OutputStream, piece: Buffer) => void) {
    super();
    this.#write = write;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left > 0) {
        const piece = rest.subarray(0, this.#left);
        this.#write(this.#stream, piece);
        this.#left -= piece.length;
        rest = rest.subarray(piece.length);
        continue;
      }
      const missing = 8 - this.#header.length;
      this.#header = Buffer.concat([this.#header, rest.subarray(0, missing)]);
      rest = rest.subarray(missing);
      if (this.#header.length < 8) continue;
      this.#stream = this.#header[0] === 2 ? 'stderr' : 'stdout';
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    done();
  }
}

/** Splits framed output that is already complete. */
export function unframe(bytes: Buffer): { stdout: string; stderr: string } {
  const parts: Record<OutputStream, Buffer[]> = { stdout: [], stderr: [] };
  for (let offset = 0; offset < bytes.length;) {
    const size = bytes.readUInt32BE(offset + 4);
    parts[bytes[offset] === 2 ? 'stderr' : 'stdout'].push(bytes.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size;
  }
  return { stdout: Buffer.concat(parts.stdout).toString(), stderr: Buffer.concat(parts.stderr).toString() };
}

/** The frames of a stream, each whole; the type is 1 for stdout, 2 for stderr, 3 for an error of the engine. */
export async function* readFrames(stream: Readable): AsyncGenerator<Readonly<{ type: number; payload: Buffer }>> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    let at = 0;
    while (rest.length - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + rest.readUInt32BE(at + 4);
      if (rest.length < end) break;
      yield { type: rest[at]!, payload: rest.subarray(at + HEADER_BYTES, end) };
      at = end;
    }
    rest = rest.subarray(at);
  }
}
