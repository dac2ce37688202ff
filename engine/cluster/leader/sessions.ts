import type { Duplex } from 'node:stream';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import type { WantedAttachment } from '../../networks/overlay/members/attachment.ts';
import { trustOf } from '../ca/rotation.ts';
import type { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { LogBroker } from '../logs/broker.ts';
import { storeAttachments } from '../networks/attachments.ts';
import type { NetworkPush } from '../networks/push.ts';
import { answerFile } from '../secrets/deliver.ts';
import type { NodeRecord, NodeState } from '../state/records.ts';
import type { Replica } from '../state/replica.ts';
import { clusterOf } from '../state/view.ts';
import { FROM_NODE_LIMITS } from '../wire/allowance.ts';
import { Channel } from '../wire/channel.ts';
import { FromNode, type FromLeader } from '../wire/schemas.ts';
import type { ReportMessage, WantFileMessage } from '../wire/task-messages.ts';
import { LeadershipLost } from './batches.ts';
import type { Turns } from './turns.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'> &
  Readonly<{
    replica: Replica;
    turns: Turns;
    networks: NetworkPush;
    dispatcher: Dispatcher;
    /** The key of secrets and configs. */
    dataKey: () => Promise<Buffer>;
    logs: LogBroker;
  }>;
type Hello = Extract<FromNode, { say: 'hello' }>;
type Withdrawing = Extract<FromNode, { say: 'withdrawing' }>;
type Session = {
  channel: Channel<typeof FromNode, FromLeader>;
  pending: number;
  /** It follows roots: a node of an earlier version does not know `trust`. */
  trusts: boolean;
};

const MISSED_BEATS = 3;
/** Under a new leader nodes first have to find it. */
const MISSED_AT_FIRST = 6;
const CHECK_INTERVAL_MS = 250;
/** Messages of a node that are not handled yet: one that waits for answers has a few. */
const MAX_PENDING = 1000;

/**
 * The nodes that talk to the leader. One that misses three beats is down; one not yet heard by this leader, six.
 */
export class Sessions implements Disposable {
  readonly #needs: Needs;
  readonly #sessions = new Map<string, Session>();
  /** When each node was last heard, also after its session. */
  readonly #heardMs = new Map<string, number>();
  /** Reason of the last refusal by node: one that tries again for ever is logged once. */
  readonly #refusals = new Map<string, string>();
  readonly #commits: Disposable;
  readonly #startedMs = performance.now();
  #timer: Disposable;
  #managers = '';
  #trust = '';
  #toldPeriodMs: number | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#tellPeriod();
    this.#tellTrust();
    this.#timer = this.#lookLater();
    this.#commits = needs.replica.onCommit(() => {
      this.#tellManagers();
      this.#tellPeriod();
      this.#tellTrust();
    });
    needs.background.run('ask which nodes are there', {}, async () => await this.#forgetStates());
  }

  /** Takes a node's connection; an older one of the same node ends. */
  open(id: string, socket: Duplex): void {
    this.#sessions.get(id)?.channel[Symbol.dispose]();
    this.#heardMs.set(id, performance.now());
    const session: Session = {
      pending: 0,
      trusts: false,
      channel: new Channel(socket, {
        schema: FromNode,
        limits: FROM_NODE_LIMITS,
        clock: this.#needs.clock,
        receive: (message) => this.#receive(id, session, message),
        refused: (reason) => this.#logRefusal(id, reason),
      }),
    };
    this.#sessions.set(id, session);
    this.#needs.background.run('end the session of a node', { node: id }, async () => {
      await session.channel.closed;
      if (this.#sessions.get(id) !== session) return;
      this.#sessions.delete(id);
      this.#needs.dispatcher.end(id);
      this.#needs.networks.end(id);
      this.#needs.logs.end(id);
    });
  }

  tell(id: string, message: FromLeader): void {
    this.#sessions.get(id)?.channel.send(message);
  }

  /** Ends the session of a node that is no member any more. */
  end(id: string): void {
    this.#sessions.get(id)?.channel[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
    this.#commits[Symbol.dispose]();
    for (const { channel } of this.#sessions.values()) channel[Symbol.dispose]();
  }

  #logRefusal(node: string, reason: string): void {
    if (this.#refusals.get(node) === reason) return;
    this.#refusals.set(node, reason);
    this.#needs.log.warn({ node, reason }, 'a node broke the protocol of sessions, ending its session');
  }

  #receive(id: string, session: Session, message: FromNode): void {
    this.#heardMs.set(id, performance.now());
    if (message.say === 'beat') session.channel.send({ say: 'beat' });
    if (message.say === 'hello') this.#greet(id, session, message);
    if (message.say === 'tls') this.#storeTls(id, session, message.tls);
    if (message.say === 'report') this.#store(id, session, message);
    if (message.say === 'wantFile') this.#answerFile(id, session, message);
    if (message.say === 'attachments') this.#attach(id, session, message.wanted);
    if (message.say === 'synced') this.#needs.networks.synced(id, message.number);
    if (message.say === 'withdrawing') this.#withdraw(id, session, message);
  }

  #greet(id: string, session: Session, { description, address, dataPath, tls, syncs, files, logs }: Hello): void {
    const { replica } = this.#needs;
    const { channel } = session;
    this.#run('greet a node', id, session, async () => {
      await this.#change(id, ({ dataPath: _before, tls: _tls, ...node }) => ({
        ...node,
        description,
        status: { state: 'ready', message: '', address },
        ...(dataPath === undefined || dataPath === address ? {} : { dataPath }),
        ...(tls === undefined ? {} : { tls }),
      }));
      const node = replica.get('node', id);
      const { tunnelPort } = clusterOf(replica);
      if (node === undefined) return channel[Symbol.dispose]();
      channel.send({
        say: 'welcome',
        periodMs: this.#periodMs,
        managers: managersIn(replica),
        role: node.spec.role,
        syncs: true,
        files: true,
        hasEtcd: node.manager !== undefined,
        ...(tunnelPort === undefined ? {} : { tunnelPort }),
      });
      session.trusts = tls !== undefined;
      if (session.trusts) channel.send({ say: 'trust', ...trustOf(clusterOf(replica)) });
      if (this.#sessions.get(id) !== session) return;
      this.#needs.networks.begin(id, (message) => channel.send(message), syncs === true);
      this.#needs.dispatcher.begin(id, (message) => channel.send(message), files === true);
      if (logs === true) this.#needs.logs.begin(id, (message) => channel.send(message));
    });
  }

  #storeTls(id: string, session: Session, tls: NonNullable<NodeRecord['tls']>): void {
    this.#run('store the certificate of a node', id, session, async () => {
      await this.#change(id, (node) => ({ ...node, tls }));
    });
  }

  #store(id: string, session: Session, report: ReportMessage): void {
    const { dispatcher } = this.#needs;
    this.#run('store the states of tasks', id, session, async () => {
      await dispatcher.hear(id, report, (message) => session.channel.send(message));
    });
  }

  #answerFile(id: string, session: Session, message: WantFileMessage): void {
    const { dataKey, replica } = this.#needs;
    this.#run('answer a node that asks for a secret', id, session, async () => {
      if (session.channel.isClosed) return;
      const answer = await answerFile(replica, dataKey, id, message);
      session.channel.send(answer);
      session.channel.charge(answer.data?.length ?? 0);
    });
  }

  #attach(id: string, session: Session, wanted: readonly WantedAttachment[]): void {
    const { turns } = this.#needs;
    this.#run('store the containers in networks', id, session, async () => {
      const { result } = await turns.write((draft, now) => storeAttachments(draft, id, wanted, now));
      for (const refusal of result) session.channel.send({ say: 'unattached', ...refusal });
    });
  }

  #withdraw(id: string, session: Session, { number, network }: Withdrawing): void {
    this.#run('see that nodes have heard of a withdrawal', id, session, async () => {
      await this.#needs.networks.heard(network);
      session.channel.send({ say: 'withdrawn', number });
    });
  }

  /** Handles a message of a node, which sends it again to the next leader. */
  #run(name: string, node: string, session: Session, work: () => Promise<void>): void {
    if (session.pending >= MAX_PENDING) return this.#refuse(node, session, 'it does not wait for answers');
    session.pending += 1;
    this.#needs.background.run(name, { node }, async () => {
      try {
        await work();
      } catch (error) {
        if (error instanceof LeadershipLost) return;
        if (!(error instanceof EngineError && error.kind === 'invalid')) throw error;
        this.#refuse(node, session, error.message);
      } finally {
        session.pending -= 1;
      }
    });
  }

  #refuse(node: string, { channel }: Session, reason: string): void {
    this.#logRefusal(node, reason);
    channel[Symbol.dispose]();
  }

  get #periodMs(): number {
    return clusterOf(this.#needs.replica).spec.heartbeatPeriodNs / 1e6;
  }

  #lookLater(): Disposable {
    return this.#needs.background.after(CHECK_INTERVAL_MS, 'look for nodes that are down', {}, async () => {
      const late = [...this.#needs.replica.all('node')].filter((node) => this.#isLate(node));
      this.#timer = this.#lookLater();
      for (const { id } of late) {
        this.end(id);
        await this.setState(id, 'down', 'heartbeat failure');
      }
    });
  }

  #isLate({ id, status }: NodeRecord): boolean {
    if (status.state === 'down') return false;
    const heardMs = this.#heardMs.get(id);
    const missed = heardMs === undefined ? MISSED_AT_FIRST : MISSED_BEATS;
    return performance.now() - (heardMs ?? this.#startedMs) > missed * this.#periodMs;
  }

  /** The states of nodes under the last leader are unknown now. */
  async #forgetStates(): Promise<void> {
    const { replica, turns } = this.#needs;
    const asked = [...replica.all('node')].filter(
      ({ id, status }) => status.state === 'ready' && !this.#sessions.has(id),
    );
    if (asked.length === 0) return;
    await turns.write((draft, now) => {
      for (const { id } of asked) {
        const node = draft.get('node', id);
        if (node === undefined || this.#sessions.has(id)) continue;
        const status = { ...node.status, state: 'unknown' as const, message: 'the cluster has a new leader' };
        draft.put('node', { ...node, status, updatedAt: now.toString() });
      }
    });
  }

  async setState(id: string, state: NodeState, message: string): Promise<void> {
    await this.#change(id, (node) => ({ ...node, status: { ...node.status, state, message } }));
  }

  async #change(id: string, change: (node: NodeRecord) => NodeRecord): Promise<void> {
    await this.#needs.turns.write((draft, now) => {
      const node = draft.get('node', id);
      if (node === undefined) return;
      const changed = change(node);
      if (JSON.stringify(changed) !== JSON.stringify(node))
        draft.put('node', { ...changed, updatedAt: now.toString() });
    });
  }

  #tellManagers(): void {
    const managers = managersIn(this.#needs.replica);
    const told = JSON.stringify(managers);
    if (told === this.#managers) return;
    this.#managers = told;
    for (const { channel } of this.#sessions.values()) channel.send({ say: 'managers', managers });
  }

  /** Nodes follow another root, or get certificates of it. */
  #tellTrust(): void {
    const cluster = this.#needs.replica.get('cluster', '');
    if (cluster === undefined) return;
    const told = `${cluster.ca.certificate} ${cluster.rotation?.root.certificate}`;
    if (told === this.#trust) return;
    const isFirst = this.#trust === '';
    this.#trust = told;
    if (isFirst) return; // each node hears of it in its welcome
    const trust = trustOf(cluster);
    for (const { channel, trusts } of this.#sessions.values()) if (trusts) channel.send({ say: 'trust', ...trust });
  }

  /** A node that beats by a longer period than the leader waits for would be down. */
  #tellPeriod(): void {
    if (this.#needs.replica.get('cluster', '') === undefined || this.#periodMs === this.#toldPeriodMs) return;
    this.#toldPeriodMs = this.#periodMs;
    for (const [id, { channel }] of this.#sessions) {
      this.#heardMs.set(id, performance.now());
      channel.send({ say: 'period', periodMs: this.#periodMs });
    }
  }
}

/** Where the managers are reached: one that learns would refuse, which nobody asks again elsewhere. */
function managersIn(replica: Replica): { id: string; address: string }[] {
  return [...replica.all('node')].flatMap(({ id, manager }) =>
    manager === undefined || manager.isLearning ? [] : [{ id, address: manager.address }],
  );
}
