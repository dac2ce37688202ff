import type { Logger } from 'pino';

import { settlesWithin, type Clock } from '../../lib/clock.ts';

/** Tasks end all the same when a node that has a session does not answer. */
const LONGEST_SECONDS = 5;

/** Whether the nodes in these networks have heard all. */
export type Question = { number: number; networks: string[] };
type Ask = (question: Question) => void;
type Needs = Readonly<{ clock: Clock; log: Logger }>;
type Waiting = Readonly<{ networks: readonly string[]; heard: PromiseWithResolvers<void> }>;

/** Asks the leader whether the other nodes have heard that tasks of this one serve no more. */
export class Withdrawals {
  readonly #needs: Needs;
  readonly #waiting = new Map<number, Waiting>();
  #ask: Ask | undefined;
  #number = 0;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** A session begins, in which all that has no answer is asked again; with undefined nobody can be asked. */
  use(ask: Ask | undefined): void {
    this.#ask = ask;
    for (const [number, { networks, heard }] of this.#waiting) {
      if (ask === undefined) heard.resolve();
      else ask({ number, networks: [...networks] });
    }
  }

  /** Resolves when all nodes with a part in these networks know what the leader has told them until now, or after a while. */
  async heard(networks: readonly string[]): Promise<void> {
    if (this.#ask === undefined) return;
    const heard = Promise.withResolvers<void>();
    this.#number += 1;
    const number = this.#number;
    this.#waiting.set(number, { networks, heard });
    this.#ask({ number, networks: [...networks] });
    const { clock, log } = this.#needs;
    if (!(await settlesWithin(heard.promise, LONGEST_SECONDS, clock))) {
      log.info({ networks }, 'a task ends though not all nodes have said that they lead nobody to it');
    }
    this.#waiting.delete(number);
  }

  /** The leader's answer. */
  answer(number: number): void {
    this.#waiting.get(number)?.heard.resolve();
  }
}
