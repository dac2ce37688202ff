type Kind = 'text' | 'binary' | 'close' | 'ping' | 'pong';

const codes: Record<Kind, number> = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 };
const FINAL = 0x80;
const MASKED = 0x80;
const MAX_CONTROL = 125;

/** Status codes as a close message carries them. */
export const GOING = Buffer.from([0x03, 0xe8]);
export const PROTOCOL_ERROR = Buffer.from([0x03, 0xea]);

/** One message in one frame, as a server sends it: not masked. */
export function encodeMessage(kind: Kind, payload: Buffer): Buffer {
  const { length } = payload;
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const frame = Buffer.allocUnsafe(2 + lengthBytes + length);
  frame[0] = FINAL | codes[kind];
  frame[1] = lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127;
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2);
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  frame.set(payload, 2 + lengthBytes);
  return frame;
}

type Handlers = { onData(bytes: Buffer): void; onPing(payload: Buffer): void; onClose(): void };

/** Takes a client's frames apart. Data is handed on as it comes, so a frame's length needs no limit. */
export class MessageDecoder {
  readonly #handlers: Handlers;
  #head: Buffer = Buffer.alloc(0);
  #code = 0;
  #mask: Buffer = Buffer.alloc(4);
  #remaining = 0;
  #taken = 0;
  #control: Buffer[] = [];
  #inside = false;
  #over = false;

  constructor(handlers: Handlers) {
    this.#handlers = handlers;
  }

  /** False when the client does not keep to the protocol. */
  push(chunk: Buffer): boolean {
    let rest = chunk;
    while (!this.#over) {
      if (!this.#inside) {
        const bytes = this.#head.length === 0 ? rest : Buffer.concat([this.#head, rest]);
        const headBytes = this.#begin(bytes);
        if (headBytes === 'broken') return false;
        if (headBytes === 'short') {
          this.#head = Buffer.from(bytes);
          return true;
        }
        this.#head = Buffer.alloc(0);
        rest = bytes.subarray(headBytes);
      }
      const payload = this.#unmask(rest.subarray(0, this.#remaining));
      rest = rest.subarray(payload.length);
      this.#remaining -= payload.length;
      this.#take(payload);
      if (this.#inside && rest.length === 0) return true;
    }
    return true;
  }

  #begin(bytes: Buffer): number | 'short' | 'broken' {
    if (bytes.length < 2) return 'short';
    const [first = 0, second = 0] = bytes;
    const short = second & 0x7f;
    const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
    const headBytes = 2 + lengthBytes + 4;
    this.#code = first & 0x0f;
    const isControl = this.#code >= 8;
    const known = this.#code <= 2 || (this.#code >= 8 && this.#code <= 10);
    if ((first & 0x70) !== 0 || !known || (second & MASKED) === 0) return 'broken';
    if (isControl && (short > MAX_CONTROL || (first & FINAL) === 0)) return 'broken';
    if (bytes.length < headBytes) return 'short';
    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (!Number.isSafeInteger(length)) return 'broken';
    this.#mask = Buffer.from(bytes.subarray(headBytes - 4, headBytes));
    this.#remaining = length;
    this.#taken = 0;
    this.#control = [];
    this.#inside = true;
    return headBytes;
  }

  #unmask(bytes: Buffer): Buffer {
    const plain = Buffer.allocUnsafe(bytes.length);
    for (let i = 0; i < bytes.length; i += 1) plain[i] = bytes[i]! ^ this.#mask[(this.#taken + i) & 3]!;
    this.#taken += bytes.length;
    return plain;
  }

  #take(payload: Buffer): void {
    const isControl = this.#code >= 8;
    if (isControl) this.#control.push(payload);
    else if (payload.length > 0) this.#handlers.onData(payload);
    if (this.#remaining > 0) return;
    this.#inside = false;
    if (this.#code === codes.ping) this.#handlers.onPing(Buffer.concat(this.#control));
    if (this.#code === codes.close) {
      this.#over = true;
      this.#handlers.onClose();
    }
  }
}
