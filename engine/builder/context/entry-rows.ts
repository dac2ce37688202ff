import type { ContextEntry } from '../../layers/threads/archive-messages.ts';

/** Chunks are large enough to be given back to the kernel by themselves. */
const CHUNK_ROWS = 2048;
const TEXT_CHUNK_BYTES = 128 * 1024;
const TYPES: readonly ContextEntry['type'][] = ['folder', 'file', 'link', 'other'];
const SUM_BYTES = 32;
/** The columns of a row, by their places in it. */
const COLUMNS = {
  sum: 0,
  offset: 32,
  bytes: 40,
  above: 48,
  nameAt: 52,
  nameBytes: 56,
  inBucket: 60,
  first: 64,
  sibling: 68,
  targetAt: 72,
  targetBytes: 76,
  number: 80,
  own: 84,
  hash: 88,
  type: 92,
  flags: 93,
} as const;
const ROW_BYTES = 96;
const [HAS_SUM, IS_IGNORED] = [1, 2];

type NumberColumn = Exclude<keyof typeof COLUMNS, 'sum' | 'offset' | 'bytes' | 'type' | 'flags'>;

/** Texts as bytes, each in one piece. */
class Texts {
  readonly #chunks: Buffer<ArrayBuffer>[] = [];
  #used = Infinity;

  add(text: Uint8Array): number {
    if (this.#used + text.length > TEXT_CHUNK_BYTES) {
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(text.length, TEXT_CHUNK_BYTES)));
      this.#used = 0;
    }
    const at = (this.#chunks.length - 1) * TEXT_CHUNK_BYTES + this.#used;
    this.#chunks.at(-1)!.set(text, this.#used);
    this.#used += text.length;
    return at;
  }

  get(at: number, bytes: number): string {
    if (bytes === 0) return '';
    const from = at % TEXT_CHUNK_BYTES;
    return this.#chunks[(at / TEXT_CHUNK_BYTES) | 0]!.toString('utf8', from, from + bytes);
  }

  isAt(at: number, text: Buffer): boolean {
    const from = at % TEXT_CHUNK_BYTES;
    const chunk = this.#chunks[(at / TEXT_CHUNK_BYTES) | 0]!;
    return chunk.compare(text, 0, text.length, from, from + text.length) === 0;
  }

  free(): void {
    for (const { buffer } of this.#chunks.splice(0)) buffer.transfer(0);
  }
}

/**
 * The entries of a context as rows of bytes: objects would take three times the memory, and as much again until V8
 * collects them. A row is known by its number, from 1 on.
 */
export class EntryRows {
  readonly #chunks: Buffer<ArrayBuffer>[] = [];
  readonly #texts = new Texts();
  /** Rows by the folder above and the name; foreign names cannot aim at one bucket. */
  #buckets = new Uint32Array(1024);
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  count = 0;

  /** Finds the row of a name; `above` is the `own` number of its folder. */
  find(above: number, name: Buffer): number {
    const hash = this.#hashOf(above, name);
    for (let row = this.#buckets[hash & (this.#buckets.length - 1)]!; row !== 0; row = this.get(row, 'inBucket')) {
      if (this.get(row, 'hash') !== hash || this.get(row, 'above') !== above) continue;
      if (this.get(row, 'nameBytes') === name.length && this.#texts.isAt(this.get(row, 'nameAt'), name)) return row;
    }
    return 0;
  }

  /** Adds a row, as the first one of a list of `sibling` rows. */
  add(above: number, name: Buffer, sibling: number): number {
    if (this.count >= this.#buckets.length) this.#widen();
    const row = (this.count += 1);
    if (row > this.#chunks.length * CHUNK_ROWS) this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_ROWS * ROW_BYTES));
    this.#chunkOf(row).fill(0, this.#placeOf(row), this.#placeOf(row) + ROW_BYTES);
    this.set(row, 'above', above);
    this.set(row, 'nameAt', this.#texts.add(name));
    this.set(row, 'nameBytes', name.length);
    this.set(row, 'sibling', sibling);
    this.set(row, 'hash', this.#hashOf(above, name));
    this.#link(row);
    return row;
  }

  /** Writes all that an entry says but its path. */
  describe(row: number, { type, sum, target, content }: Omit<ContextEntry, 'path'>): void {
    const [chunk, at] = [this.#chunkOf(row), this.#placeOf(row)];
    const text = Buffer.from(target);
    chunk[at + COLUMNS.type] = TYPES.indexOf(type);
    chunk[at + COLUMNS.flags] = sum === '' ? 0 : HAS_SUM;
    chunk.write(sum, at, SUM_BYTES, 'hex');
    chunk.writeDoubleLE(content?.offset ?? 0, at + COLUMNS.offset);
    chunk.writeDoubleLE(content?.bytes ?? -1, at + COLUMNS.bytes);
    this.set(row, 'targetAt', text.length === 0 ? 0 : this.#texts.add(text));
    this.set(row, 'targetBytes', text.length);
  }

  nameOf(row: number): string {
    return this.#texts.get(this.get(row, 'nameAt'), this.get(row, 'nameBytes'));
  }

  typeOf(row: number): ContextEntry['type'] {
    return TYPES[this.#chunkOf(row)[this.#placeOf(row) + COLUMNS.type]!]!;
  }

  targetOf(row: number): string {
    return this.#texts.get(this.get(row, 'targetAt'), this.get(row, 'targetBytes'));
  }

  /** In hexadecimal digits; empty for a folder that no entry describes. */
  sumOf(row: number): string {
    const [chunk, at] = [this.#chunkOf(row), this.#placeOf(row)];
    return (chunk[at + COLUMNS.flags]! & HAS_SUM) === 0 ? '' : chunk.toString('hex', at, at + SUM_BYTES);
  }

  contentOf(row: number): { offset: number; bytes: number } | undefined {
    const [chunk, at] = [this.#chunkOf(row), this.#placeOf(row)];
    const bytes = chunk.readDoubleLE(at + COLUMNS.bytes);
    return bytes < 0 ? undefined : { offset: chunk.readDoubleLE(at + COLUMNS.offset), bytes };
  }

  isIgnored(row: number): boolean {
    return (this.#chunkOf(row)[this.#placeOf(row) + COLUMNS.flags]! & IS_IGNORED) !== 0;
  }

  ignore(row: number): void {
    this.#chunkOf(row)[this.#placeOf(row) + COLUMNS.flags]! |= IS_IGNORED;
  }

  get(row: number, column: NumberColumn): number {
    return this.#chunkOf(row).readUInt32LE(this.#placeOf(row) + COLUMNS[column]);
  }

  set(row: number, column: NumberColumn, value: number): void {
    this.#chunkOf(row).writeUInt32LE(value, this.#placeOf(row) + COLUMNS[column]);
  }

  /** Gives the memory back at once: the collector would come late. */
  free(): void {
    for (const { buffer } of this.#chunks.splice(0)) buffer.transfer(0);
    this.#texts.free();
    this.#buckets = new Uint32Array(1);
    this.count = 0;
  }

  #chunkOf(row: number): Buffer<ArrayBuffer> {
    return this.#chunks[((row - 1) / CHUNK_ROWS) | 0]!;
  }

  #placeOf(row: number): number {
    return ((row - 1) % CHUNK_ROWS) * ROW_BYTES;
  }

  #link(row: number): void {
    const bucket = this.get(row, 'hash') & (this.#buckets.length - 1);
    this.set(row, 'inBucket', this.#buckets[bucket]!);
    this.#buckets[bucket] = row;
  }

  #widen(): void {
    this.#buckets = new Uint32Array(this.#buckets.length * 2);
    for (let row = 1; row <= this.count; row += 1) this.#link(row);
  }

  #hashOf(above: number, name: Buffer): number {
    let hash = Math.imul(this.#seed ^ above, 0x9e3779b1);
    for (let at = 0; at < name.length; at += 1) {
      hash = Math.imul(hash ^ name[at]!, 0x85ebca6b);
      hash ^= hash >>> 15;
    }
    return hash >>> 0;
  }
}
