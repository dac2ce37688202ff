import { EngineError } from '../../lib/errors.ts';

/** Memory of the paths of one output: those of some 800,000 files. */
const MAX_BYTES = 32 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const CHUNK_ENDS = 4096;

/** Paths by their numbers, as bytes: as texts in a map they would take a multiple. */
export class PathList {
  readonly #chunks: Buffer[] = [];
  /** The place of each path and its length, in two numbers. */
  readonly #places: Uint32Array[] = [];
  #length = 0;
  #bytes = 0;
  #used = Infinity;

  /** Adds a path of bytes; the empty one stands for none. Throws `invalid` beyond the limit. */
  add(path: string): void {
    const bytes = Buffer.from(path, 'latin1');
    this.#bytes += bytes.length + 2 * Uint32Array.BYTES_PER_ELEMENT;
    if (this.#bytes > MAX_BYTES)
      throw new EngineError('invalid', 'the result has too many files for an output of files: choose type=tar');
    if (this.#used + bytes.length >= CHUNK_BYTES) {
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, bytes.length)));
      this.#used = 0;
    }
    this.#chunks.at(-1)!.set(bytes, this.#used);
    const at = this.#length % CHUNK_ENDS;
    if (at === 0) this.#places.push(new Uint32Array(2 * CHUNK_ENDS));
    this.#places.at(-1)!.set([(this.#chunks.length - 1) * CHUNK_BYTES + this.#used, bytes.length], 2 * at);
    this.#used += bytes.length;
    this.#length += 1;
  }

  /** The path with this number; empty for none. */
  at(index: number): string {
    if (index >= this.#length) return '';
    const at = 2 * (index % CHUNK_ENDS);
    const places = this.#places[Math.trunc(index / CHUNK_ENDS)]!;
    const [place, bytes] = [places[at]!, places[at + 1]!];
    const from = place % CHUNK_BYTES;
    return this.#chunks[Math.trunc(place / CHUNK_BYTES)]!.toString('latin1', from, from + bytes);
  }
}
