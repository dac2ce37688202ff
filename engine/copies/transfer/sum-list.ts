import { createHash } from 'node:crypto';

import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';

const SUM_BYTES = 32;
const SUM = /^[0-9a-f]{64}$/;
/** Names that stand for checksums, in letters. */
const MAX_NAMES_LENGTH = 8 * 1024 * 1024;
/** Sums that begin with the same bits are sorted together; short lists as a whole. */
const [BUCKET_BITS, SHORT_LENGTH] = [12, 4096];

/** The checksums of many files, as bytes: as texts they would take three times the memory. */
export class SumList {
  #sums = Buffer.alloc(0);
  #count = 0;
  readonly #names: string[] = [];
  #namesLength = 0;

  /** A checksum in hexadecimal digits, or the name of a folder that has none. Throws `invalid` for too many names. */
  add(sum: string): void {
    if (!SUM.test(sum)) {
      this.#addName(sum);
      return;
    }
    if (this.#count * SUM_BYTES === this.#sums.length) this.#widen();
    this.#sums.write(sum, this.#count * SUM_BYTES, SUM_BYTES, 'hex');
    this.#count += 1;
  }

  /** The checksum of all, in the order of their bytes, in steps. */
  *digest(): Generator<void, string> {
    const hash = createHash('sha256');
    let separator = '';
    const add = (text: string): void => {
      hash.update(separator + text, 'latin1');
      separator = ',';
    };
    const names = (yield* sortInSteps(this.#names)).values();
    let name = names.next();
    const { places, ends } = this.#buckets();
    for (let bucket = 0; bucket + 1 < ends.length; bucket += 1) {
      const sums = Array.from(places.subarray(ends[bucket], ends[bucket + 1]), (at) => this.#textOf(at));
      for (const sum of yield* sortInSteps(sums)) {
        yield;
        for (; name.done !== true && name.value < sum; name = names.next()) add(name.value);
        add(sum);
      }
    }
    for (; name.done !== true; name = names.next()) add(name.value);
    this.#sums.buffer.transfer(0);
    return hash.digest('hex');
  }

  /** Each byte becomes a character, for the order. */
  #addName(name: string): void {
    this.#namesLength += name.length;
    if (this.#namesLength > MAX_NAMES_LENGTH) {
      const limit = `${MAX_NAMES_LENGTH} letters together`;
      throw new EngineError(
        'invalid',
        `the paths of folders that have no entry in the context have more than ${limit}`,
      );
    }
    this.#names.push(Buffer.from(name).toString('latin1'));
  }

  /** The places of the checksums, sorted by their buckets, and the end of each bucket behind that of the one before. */
  #buckets(): { places: Uint32Array; ends: Uint32Array } {
    const bits = this.#count <= SHORT_LENGTH ? 0 : BUCKET_BITS;
    const bucketOf = (at: number): number => this.#sums.readUInt16BE(at * SUM_BYTES) >> (16 - bits);
    const ends = new Uint32Array(2 ** bits + 1);
    for (let at = 0; at < this.#count; at += 1) ends[bucketOf(at) + 1]! += 1;
    for (let bucket = 0; bucket + 1 < ends.length; bucket += 1) ends[bucket + 1]! += ends[bucket]!;
    const [places, next] = [new Uint32Array(this.#count), ends.slice()];
    for (let at = 0; at < this.#count; at += 1) {
      const bucket = bucketOf(at);
      places[next[bucket]!] = at;
      next[bucket]! += 1;
    }
    return { places, ends };
  }

  #textOf(at: number): string {
    return this.#sums.toString('hex', at * SUM_BYTES, (at + 1) * SUM_BYTES);
  }

  #widen(): void {
    const before = this.#sums;
    this.#sums = Buffer.allocUnsafeSlow(Math.max(before.length * 2, 64 * SUM_BYTES));
    before.copy(this.#sums);
    before.buffer.transfer(0);
  }
}
