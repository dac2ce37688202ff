import { Transform, type TransformCallback } from 'node:stream';

/** A frame of RFC 6455. */
export type Frame = Readonly<{
  isLast: boolean;
  /** A bit of an extension is set, such as compression, so the payload cannot be read. */
  isExtended: boolean;
  opcode: number;
  /** All bytes of its head, then the payload. */
  headBytes: number;
  payloadBytes: number;
  mask: Buffer | undefined;
}>;

/** Control frames (close, ping, pong) may come between the frames of a message. */
export function isControl({ opcode }: Frame): boolean {
  return opcode >= 8;
}

/** The head of the frame that begins here, or undefined when it is incomplete. */
export function frameAt(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskAt = 2 + lengthBytes;
  const isMasked = (second & 0x80) !== 0;
  const headBytes = maskAt + (isMasked ? 4 : 0);
  if (bytes.length < headBytes) return undefined;
  const payloadBytes =
    lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const mask = isMasked ? bytes.subarray(maskAt, maskAt + 4) : undefined;
  return {
    isLast: (first & 0x80) !== 0,
    isExtended: (first & 0x70) !== 0,
    opcode: first & 0x0f,
    headBytes,
    payloadBytes,
    mask,
  };
}

export function unmask(payload: Buffer, mask: Buffer | undefined): Buffer {
  if (mask === undefined) return payload;
  const plain = Buffer.allocUnsafe(payload.length);
  for (let at = 0; at < payload.length; at += 1) plain[at] = payload[at]! ^ mask[at & 3]!;
  return plain;
}

/** A text message of a server, which is not masked. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head = payload.length < 126 ? Buffer.from([0x81, payload.length]) : Buffer.from([0x81, 126, 0, 0]);
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

/** Forwards the server's frames as they arrive, and inserts messages of the gateway between complete frames. */
export class InsertingMessages extends Transform {
  /** Bytes of an incomplete head. */
  #head: Buffer = Buffer.alloc(0);
  #payloadLeft = 0;
  #inMessage = false;
  #waiting: Buffer[] = [];

  insert(frame: Buffer): void {
    this.#waiting.push(frame);
    this.#insertWaiting();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#payloadLeft > 0) {
        const part = rest.subarray(0, this.#payloadLeft);
        this.#payloadLeft -= part.length;
        rest = rest.subarray(part.length);
        this.push(part);
      } else {
        const before = this.#head.length;
        this.#head = Buffer.concat([this.#head, rest.subarray(0, 14)]);
        const frame = frameAt(this.#head);
        if (frame === undefined) break;
        this.push(this.#head.subarray(0, frame.headBytes));
        rest = rest.subarray(frame.headBytes - before);
        this.#head = Buffer.alloc(0);
        this.#payloadLeft = frame.payloadBytes;
        if (!isControl(frame)) this.#inMessage = !frame.isLast;
      }
      this.#insertWaiting();
    }
    done();
  }

  #insertWaiting(): void {
    if (this.#payloadLeft > 0 || this.#head.length > 0 || this.#inMessage || this.readableEnded || this.destroyed)
      return;
    for (const frame of this.#waiting.splice(0)) this.push(frame);
  }
}
