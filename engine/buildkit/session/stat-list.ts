import { EngineError } from '../../lib/errors.ts';
import { Stat, StatName } from '../messages/file-sync.ts';
import type { Received } from '../wire/message.ts';

/** Memory of the stats of one transfer: those of some 200,000 files, more than a context may have. */
const MAX_BYTES = 16 * 1024 * 1024;
const FIRST_BYTES = 64 * 1024;
const OFFSET_BYTES = 4;

export type FileStat = Received<typeof Stat>;

/** Stats as they came: as objects, those of a large context would be a multiple. */
export class StatList {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #ends: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;
  #end = 0;

  get length(): number {
    return this.#length;
  }

  /** Throws `invalid` beyond the limit, and for a name or a size that is none. */
  add(bytes: Uint8Array): void {
    const { path, size, linkName } = StatName.decode(bytes);
    if (path === '' || path.includes('\0') || linkName.includes('\0'))
      throw new EngineError('invalid', `${JSON.stringify(path)} is no valid name of a file`);
    if (!Number.isSafeInteger(size) || size < 0) throw new EngineError('invalid', `${path} has no valid size`);
    if (this.#end + bytes.length + this.#length * OFFSET_BYTES > MAX_BYTES) {
      throw new EngineError('invalid', 'the context has too many entries: ignore files, or send fewer');
    }
    this.#bytes = withRoom(this.#bytes, this.#end, bytes.length);
    this.#ends = withRoom(this.#ends, this.#length * OFFSET_BYTES, OFFSET_BYTES);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#ends.writeUInt32LE(this.#end, this.#length * OFFSET_BYTES);
    this.#length += 1;
  }

  at(index: number): FileStat {
    return Stat.decode(this.bytesAt(index));
  }

  /** Only the path and the size of an entry, for a fraction of the time. */
  nameAt(index: number): Received<typeof StatName> {
    return StatName.decode(this.bytesAt(index));
  }

  /** As it came. */
  bytesAt(index: number): Buffer {
    const begin = index === 0 ? 0 : this.#endOf(index - 1);
    return this.#bytes.subarray(begin, this.#endOf(index));
  }

  /** The bytes that `from` reads. */
  parts(): [ends: Buffer, stats: Buffer] {
    return [this.#ends.subarray(0, this.#length * OFFSET_BYTES), this.#bytes.subarray(0, this.#end)];
  }

  /** Undefined for bytes that are cut off. */
  static from(length: number, bytes: Buffer): StatList | undefined {
    const list = new StatList();
    const begin = length * OFFSET_BYTES;
    if (bytes.length < begin) return undefined;
    list.#length = length;
    list.#ends = bytes.subarray(0, begin);
    list.#bytes = bytes.subarray(begin);
    list.#end = length === 0 ? 0 : list.#endOf(length - 1);
    return list.#end === list.#bytes.length ? list : undefined;
  }

  #endOf(index: number): number {
    return this.#ends.readUInt32LE(index * OFFSET_BYTES);
  }
}

/** The buffer, or a copy of twice the size. */
function withRoom(buffer: Buffer, used: number, more: number): Buffer {
  if (used + more <= buffer.length) return buffer;
  const grown = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, used + more));
  buffer.copy(grown, 0, 0, used);
  return grown;
}
