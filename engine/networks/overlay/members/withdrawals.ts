import type { Engine } from '../../../engine.ts';
import { settlesWithin } from '../../../lib/clock.ts';
import { SharedRuns } from '../../../lib/concurrency/shared-runs.ts';

/** Tasks end all the same when a node that has a session does not answer. */
const MAX_SECONDS = 5;

/** Whether the nodes in a network have heard all. */
export type Question = Readonly<{ number: number; network: string }>;
type Ask = (question: Question) => void;
type Needs = Pick<Engine, 'clock' | 'log'>;
type Waiting = Readonly<{ network: string; heard: PromiseWithResolvers<void> }>;

/** Asks the leader whether the other nodes have heard that tasks of this one serve no more. */
export class Withdrawals {
  readonly #needs: Needs;
  readonly #waiting = new Map<number, Waiting>();
  readonly #rounds = new SharedRuns<string>(async (network) => await this.#question(network));
  #ask: Ask | undefined;
  #number = 0;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** A session begins, in which all that has no answer is asked again; with undefined nobody can be asked. */
  use(ask: Ask | undefined): void {
    this.#ask = ask;
    for (const [number, { network, heard }] of this.#waiting) {
      if (ask === undefined) heard.resolve();
      else ask({ number, network });
    }
  }

  /** Resolves when all nodes with a part in these networks know what the leader has told them until now, or after a while. */
  async heard(networks: readonly string[]): Promise<void> {
    const { clock, log } = this.#needs;
    const all = Promise.all(networks.map(async (network) => await this.#rounds.run(network)));
    if (await settlesWithin(all, MAX_SECONDS, clock)) return;
    log.info({ networks }, 'stopping a task before all nodes removed it from load balancing');
  }

  /** The leader's answer. */
  answer(number: number): void {
    this.#waiting.get(number)?.heard.resolve();
  }

  async #question(network: string): Promise<void> {
    if (this.#ask === undefined) return;
    const heard = Promise.withResolvers<void>();
    this.#number += 1;
    const number = this.#number;
    this.#waiting.set(number, { network, heard });
    this.#ask({ number, network });
    await settlesWithin(heard.promise, MAX_SECONDS, this.#needs.clock); // those who come meanwhile ask anew
    this.#waiting.delete(number);
  }
}
