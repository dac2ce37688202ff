import { EngineError } from '../errors.ts';

/** Work that refuses to begin while it is under way. */
export class OneAtATime {
  readonly #refusal: string;
  #isBusy = false;

  constructor(refusal: string) {
    this.#refusal = refusal;
  }

  /** Throws `conflict` while an earlier call runs. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isBusy) throw new EngineError('conflict', this.#refusal);
    this.#isBusy = true;
    try {
      return await work();
    } finally {
      this.#isBusy = false;
    }
  }
}
