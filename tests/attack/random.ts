/** mulberry32: the same numbers from 0 to 1 for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Choices by one source of numbers, so that a seed repeats all of them. */
export class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number from 0 to `below - 1`. */
  upTo(below: number): number {
    return Math.floor(this.#random() * below);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.upTo(values.length)]!;
  }

  some<T>(values: readonly T[], most: number): T[] {
    return Array.from({ length: this.upTo(most + 1) }, () => this.pick(values));
  }
}
