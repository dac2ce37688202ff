import { decimal, segmentsFrom } from './pax.ts';
import { badArchive, type Segment } from './tar-header.ts';

const MAX_SEGMENTS = 100_000;

/** Throws for a map that is longer than that of any real file. */
export function refuseLongMap(segments: number): void {
  if (segments > MAX_SEGMENTS) throw badArchive('a sparse map is too long');
}

/** Reads a map of version 1.0: decimal numbers, a line each, up to the end of a block; the first is how many pairs follow. */
export class SparseMap {
  #text = '';
  #lines = 0;

  /** The segments, when this block was the last one of the map. */
  push(block: Buffer): Segment[] | undefined {
    this.#text += block.toString('latin1');
    for (const byte of block) if (byte === 0x0a) this.#lines += 1;
    const firstEnd = this.#text.indexOf('\n');
    if (firstEnd < 0) throw badArchive('a sparse map has no numbers');
    const pairs = decimal(this.#text.slice(0, firstEnd));
    refuseLongMap(pairs);
    if (this.#lines < pairs * 2 + 1) return undefined;
    const numbers = this.#text.split('\n', pairs * 2 + 1).slice(1);
    return segmentsFrom(numbers.map(decimal));
  }
}

/** Gives each stored byte its position in the file: a plain file is one segment. */
export class SegmentCursor {
  readonly #segments: readonly Segment[];
  #next = 0;
  #position: number;

  constructor(segments: readonly Segment[]) {
    this.#segments = segments;
    this.#position = segments[0]?.offset ?? 0;
  }

  place(piece: Buffer, write: (part: Buffer, position: number) => void): void {
    for (let rest = piece; rest.length > 0;) {
      const segment = this.#segments[this.#next];
      if (segment === undefined) return;
      const end = segment.offset + segment.bytes;
      const part = rest.subarray(0, end - this.#position);
      if (part.length > 0) write(part, this.#position);
      this.#position += part.length;
      rest = rest.subarray(part.length);
      if (this.#position === end) {
        this.#next += 1;
        this.#position = this.#segments[this.#next]?.offset ?? 0;
      }
    }
  }
}

/** The segments of a sparse file have to be in order, within the file, and as long as the stored bytes. */
export function checkSegments(segments: readonly Segment[], storedBytes: number, sizeBytes: number): void {
  let end = 0;
  let total = 0;
  for (const { offset, bytes } of segments) {
    if (offset < end) throw badArchive('a sparse map is out of order');
    end = offset + bytes;
    total += bytes;
  }
  if (end > sizeBytes || total !== storedBytes) throw badArchive('a sparse map does not fit its file');
}
