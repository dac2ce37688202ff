const CHUNK_BITS = 16;
const CHUNK_WORDS = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_WORDS - 1;

/** Words of a caller's record: one line of the processor's cache. */
export const RECORD_BITS = 4;
export const RECORD_WORDS = 1 << RECORD_BITS;
/** Words of a window that did not fit into its caller's record. */
export const WINDOW_WORDS = 4;

/** A record that is always zero: what is known of a caller who has none. */
export const EMPTY = RECORD_WORDS;

/** A line of the processor's cache, and how far into one the memory of a large array begins with glibc. */
const LINE_BYTES = 64;
const BEGINS_AT = 16;

/**
 * Memory for numbers outside of the garbage collector's sight: a million callers are some hundred arrays to it.
 *
 * An address counts 32-bit words; 0 is no address. It grows by chunks, so nothing is ever copied.
 */
export class Slab {
  readonly #chunks: Int32Array[] = [newChunk()];
  /** The first word that was never given away; the first two records are "none" and `EMPTY`. */
  #fresh = 2 * RECORD_WORDS;
  /** Heads of the lists of what was given back, linked through the first word. */
  #freeRecord = 0;
  #freeWindow = 0;

  get bytes(): number {
    return this.#chunks.length * CHUNK_WORDS * 4;
  }

  /** The chunk that holds `address`; the place in it is `address & 0xffff`. A record never spans two. */
  chunk(address: number): Int32Array {
    return this.#chunks[address >>> CHUNK_BITS]!;
  }

  /** A zeroed record. */
  takeRecord(): number {
    const address = this.#freeRecord;
    if (address === 0) return this.#takeFresh();
    const words = this.chunk(address);
    const at = address & CHUNK_MASK;
    this.#freeRecord = words[at]!;
    words[at] = 0; // giving back has zeroed the rest
    return address;
  }

  giveRecord(address: number): void {
    const words = this.chunk(address);
    const at = address & CHUNK_MASK;
    words.fill(0, at, at + RECORD_WORDS);
    words[at] = this.#freeRecord;
    this.#freeRecord = address;
  }

  /** Four words for one window, not zeroed. */
  takeWindow(): number {
    if (this.#freeWindow === 0) {
      const record = this.takeRecord();
      for (let part = 0; part < RECORD_WORDS; part += WINDOW_WORDS) this.giveWindow(record + part);
    }
    const address = this.#freeWindow;
    this.#freeWindow = this.chunk(address)[address & CHUNK_MASK]!;
    return address;
  }

  giveWindow(address: number): void {
    this.chunk(address)[address & CHUNK_MASK] = this.#freeWindow;
    this.#freeWindow = address;
  }

  #takeFresh(): number {
    const address = this.#fresh;
    if (address >>> CHUNK_BITS >= this.#chunks.length) this.#chunks.push(newChunk());
    this.#fresh += RECORD_WORDS;
    return address;
  }
}

/** Begins a line of the cache later where it can: a record that lies in two lines is waited for twice. */
function newChunk(): Int32Array {
  return new Int32Array(new ArrayBuffer(CHUNK_WORDS * 4 + LINE_BYTES), LINE_BYTES - BEGINS_AT, CHUNK_WORDS);
}
