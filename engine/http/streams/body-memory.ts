import { bytesPassed } from '../../host/garbage.ts';

/** Memory of all bodies of JSON that are still being read; many times what clients send at a time. */
const MAX_BYTES = 32 * 1024 * 1024;
const FIRST_BYTES = 4096;
/** Memory of a piece besides its bytes, at most. */
const PIECE_BYTES = 256;

type Refuse = (reason: 'memory' | 'length') => void;

/** Bodies that are being read: when they need too much memory, the one that has been silent longest gives way. */
export class BodyMemory {
  /** With the number of their last piece. Nothing is deleted and added again: the old tables of a set keep its new ones. */
  readonly #bodies = new Map<GrowingBody, number>();
  #bytes = 0;
  #pieces = 0;

  /** A body of at most `maxBytes`; `refuse` tells why no more of it is read. */
  begin(maxBytes: number, refuse: Refuse): GrowingBody {
    const body = new GrowingBody(maxBytes, refuse, (added) => this.#grow(body, added));
    return body;
  }

  #grow(body: GrowingBody, added: number): void {
    this.#bytes += added;
    this.#pieces += 1;
    if (body.capacity > 0) this.#bodies.set(body, this.#pieces);
    else this.#bodies.delete(body);
    if (this.#bytes > MAX_BYTES) this.#mostSilent()?.refuse('memory');
  }

  #mostSilent(): GrowingBody | undefined {
    let [silent, least]: [GrowingBody | undefined, number] = [undefined, Infinity];
    for (const [body, piece] of this.#bodies) if (piece < least) [silent, least] = [body, piece];
    return silent;
  }
}

/** The bytes of one body, in one piece: each of a million chunks of one byte would cost a hundred. */
class GrowingBody implements Disposable {
  readonly refuse: Refuse;
  readonly #maxBytes: number;
  readonly #onGrow: (added: number) => void;
  #buffer = Buffer.alloc(0);
  #length = 0;
  #isOver = false;

  constructor(maxBytes: number, refuse: Refuse, onGrow: (added: number) => void) {
    this.#maxBytes = maxBytes;
    this.#onGrow = onGrow;
    this.refuse = (reason) => {
      this[Symbol.dispose]();
      refuse(reason);
    };
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  get capacity(): number {
    return this.#buffer.length;
  }

  push(piece: Buffer): void {
    if (this.#isOver) return;
    const length = this.#length + piece.length;
    if (length > this.#maxBytes) return this.refuse('length');
    const before = this.capacity;
    if (length > before) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#maxBytes, Math.max(2 * before, length, FIRST_BYTES)));
      bytesPassed(before);
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
    bytesPassed(piece.length + PIECE_BYTES);
    this.#onGrow(this.capacity - before);
  }

  /** Drops the bytes, and everything that follows. */
  [Symbol.dispose](): void {
    const { capacity } = this;
    this.#isOver = true;
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    this.#onGrow(-capacity);
  }
}
