import { randomInt } from 'node:crypto';

import { RECORD_WORDS } from './slab.ts';

const FIRST_SLOTS = 1024;
/** Three quarters full, then twice as large. */
const FULLEST = 0.75;
const RECORD_BITS = Math.log2(RECORD_WORDS);

/**
 * From a caller's key to the address of its record. 0: there is none.
 *
 * A Map looks at a chain of entries and at the key of each; here hashes and addresses lie side by side, so that among
 * a million callers a look-up waits for memory half as often.
 */
export class KeyTable {
  /** Unknown outside, so that nobody can choose keys that share a place. */
  readonly #seed = randomInt(0x7f_ff_ff_ff);
  /** By the number of the record; a hole where a record holds windows of another one. */
  #keys: (string | undefined)[] = [];
  /** Pairs of hash and address. */
  #slots = new Int32Array(FIRST_SLOTS * 2);
  #mask = FIRST_SLOTS - 1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** One more than the highest position for `at`. */
  get end(): number {
    return this.#keys.length;
  }

  find(key: string): number {
    const slots = this.#slots;
    const hash = hashOf(key, this.#seed);
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const address = slots[slot * 2 + 1]!;
      if (address === 0) return 0;
      if (slots[slot * 2] === hash && this.#keys[address >>> RECORD_BITS] === key) return address;
    }
  }

  /** The key must not be there. */
  insert(key: string, address: number): void {
    if (this.#size + 1 > (this.#mask + 1) * FULLEST) this.#grow();
    this.#keys[address >>> RECORD_BITS] = key;
    this.#place(hashOf(key, this.#seed), address);
    this.#size += 1;
  }

  /** The key must be there. Those that had to step aside for it move back, so that no search passes an empty slot. */
  delete(key: string): void {
    const slots = this.#slots;
    const mask = this.#mask;
    const address = this.find(key);
    let hole = hashOf(key, this.#seed) & mask;
    while (slots[hole * 2 + 1] !== address) hole = (hole + 1) & mask;
    for (let slot = (hole + 1) & mask; slots[slot * 2 + 1] !== 0; slot = (slot + 1) & mask) {
      const home = slots[slot * 2]! & mask;
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      slots[hole * 2] = slots[slot * 2]!;
      slots[hole * 2 + 1] = slots[slot * 2 + 1]!;
      hole = slot;
    }
    slots[hole * 2 + 1] = 0;
    this.#keys[address >>> RECORD_BITS] = undefined;
    this.#size -= 1;
  }

  /** The key and the address at a position, where there is one: for going round. */
  at(position: number): [key: string, address: number] | undefined {
    const key = this.#keys[position];
    return key === undefined ? undefined : [key, position << RECORD_BITS];
  }

  *[Symbol.iterator](): Generator<[key: string, address: number]> {
    for (let position = 0; position < this.#keys.length; position += 1) {
      const entry = this.at(position);
      if (entry !== undefined) yield entry;
    }
  }

  clear(): void {
    this.#keys = [];
    this.#slots = new Int32Array(FIRST_SLOTS * 2);
    this.#mask = FIRST_SLOTS - 1;
    this.#size = 0;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(old.length * 2);
    this.#mask = this.#slots.length / 2 - 1;
    for (let pair = 0; pair < old.length; pair += 2) {
      if (old[pair + 1] !== 0) this.#place(old[pair]!, old[pair + 1]!);
    }
  }

  #place(hash: number, address: number): void {
    let slot = hash & this.#mask;
    while (this.#slots[slot * 2 + 1] !== 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot * 2] = hash;
    this.#slots[slot * 2 + 1] = address;
  }
}

function hashOf(key: string, seed: number): number {
  let hash = seed;
  for (let n = 0; n < key.length; n += 1) hash = Math.imul(hash ^ key.charCodeAt(n), 0x5b_d1_e9_95) ^ (hash >>> 15);
  return hash ^ (hash >>> 13);
}
