import type { KeptContext } from '../../builder/context/kept-contexts.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { StatList } from './stat-list.ts';

const WINDOW_BYTES = 256 * 1024;
const [COUNT_BYTES, OFFSET_BYTES] = [4, 8];
const NOWHERE = -1;

/**
 * One transfer of a client's folder beside the one before: files whose stats are equal are read from the archive of that
 * one, and the places of all contents in the archive of this one are written down for the next.
 */
export class Transfer {
  readonly #kept: KeptContext | undefined;
  #stats = new StatList();
  /** Places of contents in the earlier archive, by the numbers of this transfer. */
  #known = new Float64Array();
  #places = new Float64Array();
  #window = Buffer.alloc(0);
  #windowAt = 0;
  #isUnchanged = false;

  constructor(kept: KeptContext | undefined) {
    this.#kept = kept;
  }

  /** Finds the files that are known; `stats` are complete, in the client's order. */
  async begin(stats: StatList): Promise<void> {
    this.#stats = stats;
    this.#known = new Float64Array(stats.length).fill(NOWHERE);
    this.#places = new Float64Array(stats.length).fill(NOWHERE);
    const before = this.#kept && earlierIn(this.#kept.index);
    if (before === undefined) return;
    const { size } = await this.#kept!.archive.stat();
    const slices = new Slices();
    let [at, same] = [0, 0];
    for (let id = 0; id < stats.length; id += 1) {
      if (slices.isOver) await slices.pause();
      const bytes = stats.bytesAt(id);
      if (at < before.stats.length && !before.stats.bytesAt(at).equals(bytes)) {
        // Both lists are in the client's order: entries in front of this one are gone.
        const { path } = stats.at(id);
        while (at < before.stats.length && isBefore(before.stats.at(at).path, path)) {
          if (slices.isOver) await slices.pause();
          at += 1;
        }
      }
      if (at >= before.stats.length || !before.stats.bytesAt(at).equals(bytes)) continue;
      const place = before.places[at]!;
      if (place >= 0 && place + stats.at(id).size <= size) this.#known[id] = place;
      at += 1;
      same += 1;
    }
    this.#isUnchanged = same === stats.length && same === before.stats.length;
  }

  /** Whether all entries are those of the transfer before. */
  get isUnchanged(): boolean {
    return this.#isUnchanged;
  }

  isKnown(id: number): boolean {
    return this.#known[id]! >= 0;
  }

  /** The content of a known file. A piece is valid until the next one is asked for. */
  async *read(id: number): AsyncGenerator<Uint8Array> {
    let from = this.#known[id]!;
    for (let left = this.#stats.at(id).size; left > 0;) {
      const piece = (await this.#read(from)).subarray(0, left);
      yield piece;
      from += piece.length;
      left -= piece.length;
    }
  }

  /** Remembers the place of a content in the archive of this transfer. */
  place(id: number, offset: number): void {
    this.#places[id] = offset;
  }

  /** For the next transfer. */
  index(): Buffer {
    const count = Buffer.alloc(COUNT_BYTES);
    count.writeUInt32LE(this.#stats.length);
    const { buffer, byteOffset, byteLength } = this.#places;
    return Buffer.concat([count, Buffer.from(buffer, byteOffset, byteLength), ...this.#stats.parts()]);
  }

  /** Small files lie side by side: one read brings many. */
  async #read(from: number): Promise<Buffer> {
    const at = from - this.#windowAt;
    if (at >= 0 && at < this.#window.length) return this.#window.subarray(at);
    const memory = Buffer.from(this.#window.buffer);
    const whole = memory.length === WINDOW_BYTES ? memory : Buffer.allocUnsafeSlow(WINDOW_BYTES);
    const { bytesRead } = await this.#kept!.archive.read(whole, 0, WINDOW_BYTES, from);
    if (bytesRead === 0) throw new EngineError('failed', 'the kept context of an earlier build is shorter than before');
    this.#window = whole.subarray(0, bytesRead);
    this.#windowAt = from;
    return this.#window;
  }
}

type Earlier = Readonly<{ stats: StatList; places: Float64Array }>;

/** Undefined for a file that is cut off. */
function earlierIn(index: Buffer): Earlier | undefined {
  if (index.length < COUNT_BYTES) return undefined;
  const count = index.readUInt32LE();
  const end = COUNT_BYTES + count * OFFSET_BYTES;
  const stats = StatList.from(count, index.subarray(end));
  if (stats === undefined) return undefined;
  // Copied: numbers of eight bytes begin at multiples of eight.
  return { stats, places: new Float64Array(new Uint8Array(index.subarray(COUNT_BYTES, end)).buffer) };
}

/** In the order of a walk: a folder with all that is in it comes before its next sibling. */
function isBefore(path: string, other: string): boolean {
  const [bytes, others] = [path, other].map((each) => Buffer.from(each.replaceAll('/', '\0')));
  return bytes!.compare(others!) < 0;
}
