/**
 * Whether a node has heard what it was told. One question at a time is under way; all that is asked meanwhile shares the
 * next one.
 */
export class Sync implements Disposable {
  readonly #ask: (number: number) => void;
  #number = 0;
  #underWay: PromiseWithResolvers<void> | undefined;
  #next: PromiseWithResolvers<void> | undefined;

  constructor(ask: (number: number) => void) {
    this.#ask = ask;
  }

  /** Resolves when the node has heard all until now, or its session has ended. */
  async heard(): Promise<void> {
    if (this.#underWay === undefined) {
      this.#begin(Promise.withResolvers());
      await this.#underWay!.promise;
    } else {
      this.#next ??= Promise.withResolvers();
      await this.#next.promise;
    }
  }

  /** The node's answer; one that was not asked for is not an error. */
  answer(number: number): void {
    if (number !== this.#number) return;
    const next = this.#next;
    this.#underWay?.resolve();
    this.#underWay = this.#next = undefined;
    if (next !== undefined) this.#begin(next);
  }

  [Symbol.dispose](): void {
    this.#underWay?.resolve();
    this.#next?.resolve();
  }

  #begin(question: PromiseWithResolvers<void>): void {
    this.#underWay = question;
    this.#number += 1;
    this.#ask(this.#number);
  }
}
