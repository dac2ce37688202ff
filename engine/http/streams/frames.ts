/** Stream types of the 8-byte framing; 0 (stdin) is never written, but readers show it as stdout. */
type StreamType = 0 | 1 | 2;
/** Errors of the engine in a log; only written. */
type ErrorType = 3;
export const STDOUT: StreamType = 1;

const HEADER_BYTES = 8;

/** One frame: type, three zero bytes, the payload's length (big endian), the payload. */
export function encodeFrame(type: StreamType | ErrorType, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt32BE(type * 0x1000000, 0);
  frame.writeUInt32BE(payload.length, 4);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Parses a framed stream from chunks of any size; payloads are passed on as they arrive. */
export class FrameDecoder {
  readonly #onPayload: (type: StreamType, payload: Buffer) => void;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #payloadBytes = 0;

  constructor(onPayload: (type: StreamType, payload: Buffer) => void) {
    this.#onPayload = onPayload;
  }

  /** Whether the stream is between two frames: an end anywhere else is a truncation. */
  get atFrameStart(): boolean {
    return this.#headerBytes === 0;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#headerBytes < HEADER_BYTES) {
        const taken = chunk.copy(this.#header, this.#headerBytes, offset, offset + HEADER_BYTES - this.#headerBytes);
        this.#headerBytes += taken;
        offset += taken;
        if (this.#headerBytes === HEADER_BYTES) this.#beginPayload();
      } else {
        const payload = chunk.subarray(offset, offset + this.#payloadBytes);
        offset += payload.length;
        this.#payloadBytes -= payload.length;
        this.#onPayload(this.#type, payload);
        if (this.#payloadBytes === 0) this.#headerBytes = 0;
      }
    }
  }

  #beginPayload(): void {
    if (this.#header[0]! > 2 || this.#header[1] !== 0 || this.#header[2] !== 0 || this.#header[3] !== 0) {
      throw new Error(`not a frame header: ${this.#header.toString('hex')}`);
    }
    this.#payloadBytes = this.#header.readUInt32BE(4);
    if (this.#payloadBytes === 0) this.#headerBytes = 0;
  }

  get #type(): StreamType {
    return this.#header[0] as StreamType;
  }
}
