import { randomInt } from 'node:crypto';

import { EMPTY, RECORD_BITS } from './slab.ts';

const MIN_WORDS = 32;
/** The part of the pairs that may be in use: a look-up then reads under two on average, mostly in one cache line. */
const MAX_IN_USE = 0.6;

/**
 * Which record is whose: a hash table with two words for each caller, and the callers' keys in the order of their
 * records.
 *
 * Among a million callers a look-up is waiting for memory. A `Map` has two entries in each of its buckets and looks at
 * the key of each; here a pair knows the whole hash, so that only the right key is looked at, at the same time as the
 * record.
 */
export class CallerTable {
  /** Callers choose their addresses: without a secret they could choose colliding ones. */
  readonly #secret0 = randomInt(2 ** 32) | 0;
  readonly #secret1 = randomInt(2 ** 32) | 0;
  /** Pairs: the hash, and the address of the record; 0 is no address. */
  #slots = new Int32Array(MIN_WORDS);
  /** Turns a hash into the place of a pair. */
  #mask = MIN_WORDS - 2;
  #size = 0;
  /** By the number of the record. */
  readonly #keys: (string | undefined)[] = [];

  get size(): number {
    return this.#size;
  }

  /** One more than the highest number that a record had. */
  get numbers(): number {
    return this.#keys.length;
  }

  /** The address of the caller's record, or of `EMPTY`. */
  find(key: string): number {
    const hash = hashOf(key, this.#secret0, this.#secret1);
    const slots = this.#slots;
    const mask = this.#mask;
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const address = slots[at + 1]!;
      if (address === 0) return EMPTY;
      if (slots[at] === hash && this.#keys[address >>> RECORD_BITS] === key) return address;
    }
  }

  /** Is this the address of the caller's record? */
  isAt(address: number, key: string): boolean {
    return this.#keys[address >>> RECORD_BITS] === key;
  }

  /** For a key that is not there. */
  insert(key: string, address: number): void {
    this.#size += 1;
    if (2 * this.#size > this.#slots.length * MAX_IN_USE) this.#grow();
    this.#place(hashOf(key, this.#secret0, this.#secret1), address);
    const number = address >>> RECORD_BITS;
    while (this.#keys.length < number) this.#keys.push(undefined);
    this.#keys[number] = key;
  }

  /** For a key that is there. */
  delete(key: string, address: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let free = (hashOf(key, this.#secret0, this.#secret1) << 1) & mask;
    while (slots[free + 1] !== address) free = (free + 2) & mask;
    // Following entries move up, unless they would come to lie before their place: a search ends at the first free pair.
    for (let next = (free + 2) & mask; slots[next + 1] !== 0; next = (next + 2) & mask) {
      const place = (slots[next]! << 1) & mask;
      if (((next - place) & mask) < ((next - free) & mask)) continue;
      slots[free] = slots[next]!;
      slots[free + 1] = slots[next + 1]!;
      free = next;
    }
    slots[free + 1] = 0;
    this.#keys[address >>> RECORD_BITS] = undefined;
    this.#size -= 1;
  }

  /** Key of the record with this number: none, where it was given back or holds windows. */
  keyAt(number: number): string | undefined {
    return this.#keys[number];
  }

  clear(): void {
    this.#slots = new Int32Array(MIN_WORDS);
    this.#mask = MIN_WORDS - 2;
    this.#size = 0;
    this.#keys.length = 0;
  }

  #place(hash: number, address: number): void {
    const slots = this.#slots;
    let at = (hash << 1) & this.#mask;
    while (slots[at + 1] !== 0) at = (at + 2) & this.#mask;
    slots[at] = hash;
    slots[at + 1] = address;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(2 * old.length);
    this.#mask = this.#slots.length - 2;
    for (let at = 0; at < old.length; at += 2) if (old[at + 1] !== 0) this.#place(old[at]!, old[at + 1]!);
  }
}

/** The address of the record of this number. */
export function addressOf(number: number): number {
  return number << RECORD_BITS;
}

/**
 * HalfSipHash-1-3 of the low byte of each character. Written out, since a function for the round, which has four
 * results, would take longer than all the rest.
 */
function hashOf(key: string, secret0: number, secret1: number): number {
  let v0 = secret0;
  let v1 = secret1;
  let v2 = secret0 ^ 0x6c_79_67_65;
  let v3 = secret1 ^ 0x74_65_64_62;
  const { length } = key;
  let at = 0;
  for (; at + 3 < length; at += 4) {
    const word =
      key.charCodeAt(at) ^
      (key.charCodeAt(at + 1) << 8) ^
      (key.charCodeAt(at + 2) << 16) ^
      (key.charCodeAt(at + 3) << 24);
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  let word = length << 24;
  for (let bits = 0; at < length; at += 1, bits += 8) word ^= key.charCodeAt(at) << bits;
  v3 ^= word;
  for (let round = 0; round < 4; round += 1) {
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    if (round === 0) {
      v0 ^= word;
      v2 ^= 0xff;
    }
  }
  return v1 ^ v3;
}
