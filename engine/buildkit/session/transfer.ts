import type { ContextFiles, KeptContext } from '../../builder/context/kept-contexts.ts';
import { BLOCK_BYTES } from '../../layers/tar/tar-header.ts';
import { TAR_END } from '../../layers/tar/tar-write.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { StatList } from './stat-list.ts';

const WINDOW_BYTES = 256 * 1024;
const [COUNT_BYTES, OFFSET_BYTES] = [4, 8];
const HEAD_BYTES = 2 * COUNT_BYTES + OFFSET_BYTES;
const NOWHERE = -1;

/** Entries of earlier transfers that an archive may have: this part of its bytes and of its entries, and so many more. */
const [MAX_UNUSED_PART, MAX_UNUSED_BYTES, MAX_UNUSED_ENTRIES] = [1 / 4, 1024 * 1024, 1000];

/**
 * One transfer of a client's folder beside the one before. Where most stats are equal the archive of that one is taken over, and
 * changed entries are put behind it; otherwise the contents of equal files are read from it into a new one. The places of all
 * contents in the archive of this transfer are written down for the next.
 */
export class Transfer {
  readonly #kept: KeptContext | undefined;
  #stats = new StatList();
  /** Places of contents in the earlier archive, by the numbers of this transfer. */
  #known = new Float64Array();
  #places = new Float64Array();
  #window = Buffer.alloc(0);
  #windowAt = 0;
  /** Marks entries that the earlier archive has. */
  #same = new Uint8Array();
  #takesOver: 'all' | 'equal' | 'nothing' = 'nothing';
  /** Paths of entries that are gone. */
  readonly removed: string[] = [];
  /** Bytes and entries of the archive that belong to earlier transfers, and the size of the earlier one without its end. */
  #unusedBytes = 0;
  #unusedEntries = 0;
  #earlierBytes = 0;
  readonly #files: ContextFiles;

  /** `files`: the context of this transfer, for files that are taken over. */
  constructor(kept: KeptContext | undefined, files: ContextFiles) {
    this.#kept = kept;
    this.#files = files;
  }

  /** Finds the files that are known; `stats` are complete, in the client's order. */
  async begin(stats: StatList): Promise<void> {
    this.#stats = stats;
    this.#known = new Float64Array(stats.length).fill(NOWHERE);
    this.#places = new Float64Array(stats.length).fill(NOWHERE);
    const before = this.#kept && earlierIn(this.#kept.index);
    if (before === undefined) return;
    const { size } = await this.#kept!.archive.stat();
    this.#same = new Uint8Array(stats.length);
    this.#earlierBytes = size - TAR_END.length;
    this.#unusedBytes = before.unusedBytes;
    this.#unusedEntries = before.unusedEntries;
    const slices = new Slices();
    let [at, same] = [0, 0];
    const leaveBehind = (): void => {
      const { path, size: bytes } = before.stats.nameAt(at);
      this.removed.push(path);
      this.#unusedBytes += BLOCK_BYTES + (before.places[at]! < 0 ? 0 : bytes);
      this.#unusedEntries += 1;
      at += 1;
    };
    for (let id = 0; id < stats.length; id += 1) {
      if (slices.isOver) await slices.pause();
      const bytes = stats.bytesAt(id);
      if (at < before.stats.length && !before.stats.bytesAt(at).equals(bytes)) {
        // Both lists are in the client's order: entries in front of this one are gone.
        const { path } = stats.nameAt(id);
        while (at < before.stats.length && isBefore(before.stats.nameAt(at).path, path)) {
          if (slices.isOver) await slices.pause();
          leaveBehind();
        }
      }
      if (at >= before.stats.length || !before.stats.bytesAt(at).equals(bytes)) continue;
      const place = before.places[at]!;
      if (place >= 0 && place + stats.nameAt(id).size <= size) this.#known[id] = place;
      this.#same[id] = 1;
      at += 1;
      same += 1;
    }
    while (at < before.stats.length) leaveBehind();
    await this.#takeOver(same === stats.length && same === before.stats.length);
  }

  async #takeOver(isUnchanged: boolean): Promise<void> {
    if (isUnchanged) {
      if (this.#kept!.link(this.#files)) this.#takesOver = 'all';
      return;
    }
    if (this.#unusedBytes > this.#earlierBytes * MAX_UNUSED_PART + MAX_UNUSED_BYTES) return;
    if (this.#unusedEntries > this.#stats.length * MAX_UNUSED_PART + MAX_UNUSED_ENTRIES) return;
    if (!(await this.#kept!.copy(this.#files))) return;
    this.#takesOver = 'equal';
    for (const [id, place] of this.#known.entries()) this.#places[id] = place;
  }

  /** The entries that the context of this transfer has already: its files are there. */
  get takesOver(): 'all' | 'equal' | 'nothing' {
    return this.#takesOver;
  }

  /** Whether the entry need not be read. */
  isTakenOver(id: number): boolean {
    return this.#takesOver !== 'nothing' && this.#same[id] === 1;
  }

  /** The place of new entries in the archive. */
  get behind(): number {
    return this.#takesOver === 'equal' ? this.#earlierBytes : 0;
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
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(this.#stats.length);
    const isNew = this.#takesOver === 'nothing';
    head.writeUInt32LE(isNew ? 0 : this.#unusedEntries, COUNT_BYTES);
    head.writeDoubleLE(isNew ? 0 : this.#unusedBytes, 2 * COUNT_BYTES);
    const { buffer, byteOffset, byteLength } = this.#places;
    return Buffer.concat([head, Buffer.from(buffer, byteOffset, byteLength), ...this.#stats.parts()]);
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

type Earlier = Readonly<{ stats: StatList; places: Float64Array; unusedBytes: number; unusedEntries: number }>;

/** Undefined for a file that is cut off. */
function earlierIn(index: Buffer): Earlier | undefined {
  if (index.length < HEAD_BYTES) return undefined;
  const count = index.readUInt32LE();
  const unusedEntries = index.readUInt32LE(COUNT_BYTES);
  const unusedBytes = index.readDoubleLE(2 * COUNT_BYTES);
  const end = HEAD_BYTES + count * OFFSET_BYTES;
  const stats = StatList.from(count, index.subarray(end));
  if (stats === undefined) return undefined;
  // Copied: numbers of eight bytes begin at multiples of eight.
  return {
    stats,
    unusedBytes,
    unusedEntries,
    places: new Float64Array(new Uint8Array(index.subarray(HEAD_BYTES, end)).buffer),
  };
}

/** In the order of a walk: a folder with all that is in it comes before its next sibling. */
function isBefore(path: string, other: string): boolean {
  const [bytes, others] = [path, other].map((each) => Buffer.from(each.replaceAll('/', '\0')));
  return bytes!.compare(others!) < 0;
}
