import type { Static } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { raftOf } from '../etcd/members.ts';
import type { Leadership } from '../leader/leadership.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';
import { OutageAnswer, type OutageRequest } from '../wire/schemas.ts';

type Needs = Readonly<{ client: WireClient }>;
type Settings = Readonly<{
  node: string;
  /** This manager's own leadership, or the address of who leads, as far as is known. */
  leading: () => Leadership | string | undefined;
}>;

const ANSWER_TIMEOUT_MS = 2000;

/** Takes this manager's etcd out of service for a while, when no other manager's is. */
export class EtcdService {
  readonly #needs: Needs;
  readonly #settings: Settings;

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
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

  /** It answers, and knows who leads raft. */
  async isThere(etcd: Etcd): Promise<boolean> {
    try {
      return (await raftOf(etcd, ANSWER_TIMEOUT_MS)).leader !== '0';
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
      return (await this.#needs.client.ask(leader, '/v1/outage', { step }, OutageAnswer, ANSWER_TIMEOUT_MS)).granted;
    } catch (error) {
      if (error instanceof NotLeader || error instanceof NotReached || error instanceof EngineError) return false;
      throw error;
    }
  }
}
