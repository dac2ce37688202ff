import type { Static } from 'typebox';

import type { Engine } from '../../engine.ts';
import { sleep } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import type { EtcdSettings } from '../etcd/flags.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { raftOf, stepAside } from '../etcd/members.ts';
import type { EtcdProcess } from '../etcd/process.ts';
import type { Leadership } from '../leader/leadership.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';
import { OutageAnswer, type OutageRequest } from '../wire/schemas.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'> & Readonly<{ client: WireClient; process: EtcdProcess }>;
type Settings = Readonly<{
  node: string;
  /** This manager's own leadership, or the address of who leads, as far as is known. */
  leading: () => Leadership | string | undefined;
  /** Settings of the cluster's record. */
  wanted: () => EtcdSettings;
  /** It runs with these now. */
  settled: (settings: EtcdSettings) => void;
}>;

const AGAIN_MS = 500;
const LOOK_MS = 50;
const ANSWER_MS = 2000;
const BACK_MS = 60_000;

/** Takes this manager's etcd out of service for a while, when no other manager's is. */
export class EtcdService implements Disposable {
  readonly #needs: Needs;
  readonly #settings: Settings;
  #isSettling = false;
  #isEnding = false;

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
  }

  /** Starts etcd again with other settings, in its turn; a write waits meanwhile. */
  settle(etcd: Etcd): void {
    const { background, process } = this.#needs;
    const { wanted, settled } = this.#settings;
    if (this.#isSettling || process.has(wanted())) return;
    this.#isSettling = true;
    background.run('give etcd its settings', {}, async () => {
      try {
        while (!this.#isEnding && !process.has(wanted())) {
          const settings = wanted();
          const isDone = await this.inTurn(async () => await this.#restart(etcd, settings));
          if (!isDone) await sleep(this.#needs.clock, AGAIN_MS);
          else settled(settings);
        }
      } finally {
        this.#isSettling = false;
      }
    });
  }

  /** False: it is another manager's turn, or no manager leads. */
  async inTurn(work: () => Promise<void>): Promise<boolean> {
    if (!(await this.#tell('begin'))) return false;
    try {
      await work();
    } finally {
      await this.#tell('end');
    }
    return true;
  }

  [Symbol.dispose](): void {
    this.#isEnding = true;
  }

  async #restart(etcd: Etcd, settings: EtcdSettings): Promise<void> {
    const { process } = this.#needs;
    try {
      await stepAside(etcd, ANSWER_MS);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error; // it starts again without an answer too
    }
    await process.use(settings);
    const until = performance.now() + BACK_MS;
    while (!this.#isEnding && !(await this.isThere(etcd))) {
      if (performance.now() > until) throw new EngineError('failed', `etcd does not come back: ${process.said}`);
      await sleep(this.#needs.clock, LOOK_MS);
    }
    this.#needs.log.info('etcd runs with its new settings');
  }

  /** It answers, and knows who leads raft. */
  async isThere(etcd: Etcd): Promise<boolean> {
    try {
      return (await raftOf(etcd, ANSWER_MS)).leader !== '0';
    } catch (error) {
      if (error instanceof EtcdError) return false;
      throw error;
    }
  }

  async #tell(step: Static<typeof OutageRequest>['step']): Promise<boolean> {
    const { node, leading } = this.#settings;
    const leader = leading();
    if (leader === undefined) return false;
    if (typeof leader !== 'string') return leader.outage[step](node);
    try {
      return (await this.#needs.client.ask(leader, '/v1/outage', { step }, OutageAnswer, ANSWER_MS)).granted;
    } catch (error) {
      if (error instanceof NotLeader || error instanceof NotReached || error instanceof EngineError) return false;
      throw error;
    }
  }
}
