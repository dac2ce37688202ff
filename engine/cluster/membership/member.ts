import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { Type } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { Agent } from '../agent/agent.ts';
import type { AgentNeeds } from '../agent/needs.ts';
import { newRequest } from '../ca/certificates.ts';
import { issuerDigest, trustDigest } from '../ca/rotation.ts';
import { applyNetworkNews } from '../networks/network-news.ts';
import type { ClusterSpec, NodeRole } from '../state/records.ts';
import { WireClient } from '../wire/client.ts';
import { CertificateAnswer, type FromLeader, type FromNode } from '../wire/schemas.ts';
import { readAddress } from './addresses.ts';
import { askLeader, type Asking } from './ask-leader.ts';
import { describeNode, type DescriptionNeeds } from './description.ts';
import { awaitVote, requestPlace } from './etcd-place.ts';
import type { Identity } from './identity.ts';
import { Manager, type ManagerNeeds } from './manager.ts';
import { Session } from './session.ts';
import { upgradeToLeader } from './upgrade-to-leader.ts';

export type MemberNeeds = Omit<ManagerNeeds, 'client' | 'keepRaft'> &
  DescriptionNeeds &
  Readonly<{
    /** Called with a member that is not complete yet, so that it ends with the daemon. */
    begun: (part: AsyncDisposable) => void;
    /** For the node's tasks. */
    engine: AgentNeeds;
  }>;

const DEFAULT_RAFT = {
  snapshotInterval: 10_000,
  keepOldSnapshots: 0,
  logEntriesForSlowFollowers: 500,
  heartbeatTick: 1,
  electionTick: 10,
};
const ASK_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 120_000;
/** Shares of a certificate's life. */
const [RENEW_FROM, RENEW_UNTIL] = [0.5, 0.8];
const RENEWAL_RETRY_DELAY_MS = 60_000;
const MAX_ROTATION_DELAY_MS = 2000;
/** An external authority may give certificates that are due at once. */
const MIN_RENEWAL_DELAY_MS = 5000;

/** This node as a member of its cluster: its identity, its session with the leader, and what it needs where it is a manager. */
export class Member implements AsyncDisposable {
  readonly client: WireClient;
  readonly #needs: MemberNeeds;
  #identity: Identity;
  #session: Session | undefined;
  #manager: Manager | undefined;
  #starting: Manager | undefined;
  #agent: Agent | undefined;
  #renewal: Disposable | undefined;
  /** Tells the leader what it asked for by `trust`. */
  #tellTls: (() => void) | undefined;
  #changing: Promise<void> = Promise.resolve();
  #isEnding = false;
  /** The role could not be taken up yet. */
  #roleProblem = '';

  constructor(needs: MemberNeeds, identity: Identity) {
    this.#needs = needs;
    this.#identity = identity;
    this.client = new WireClient(identity, needs.clock);
    needs.begun(this);
  }

  get identity(): Identity {
    return this.#identity;
  }

  /** Resolves when the leader knows the node. */
  get welcomed(): Promise<void> {
    return this.#session?.welcomed ?? Promise.resolve();
  }

  /** Undefined on a worker. */
  get manager(): Manager | undefined {
    return this.#manager;
  }

  /** Why the node is out of touch with its cluster; empty if it is not. */
  get problem(): string {
    return this.#roleProblem === '' ? (this.#session?.problem ?? '') : this.#roleProblem;
  }

  /**
   * Where managers are, the leader first where it is known. This node is among them only while it is one: on its way there the
   * others list it already, but it knows no record yet and would refuse itself.
   */
  get managers(): string[] {
    const leader = this.#manager?.leader?.address;
    const isThere = ({ id, address }: { id: string; address: string }): boolean =>
      address !== leader && (id !== this.#identity.nodeId || this.#manager !== undefined);
    const others = this.#identity.managers.filter(isThere).map(({ address }) => address);
    return leader === undefined ? others : [leader, ...others];
  }

  /** The manager that this node is from now on, and which ends with the member; it does nothing yet. */
  newManager(raft = this.#identity.raft ?? DEFAULT_RAFT): Manager {
    const keepRaft = (raft: ClusterSpec['raft']): void => this.change({ raft });
    this.#starting = new Manager({ ...this.#needs, client: this.client, keepRaft }, this.#identity, raft);
    return this.#starting;
  }

  /** Makes the session; `manager` is one that follows etcd already. */
  begin(manager?: Manager): Session {
    this.#manager = manager;
    const agent = this.#newAgent();
    this.#agent = agent;
    const { overlays } = this.#needs.engine.networks;
    this.#session = new Session(
      { ...this.#needs, client: this.client },
      {
        managers: () => this.managers,
        description: () => describeNode(this.#needs),
        address: () => readAddress(this.#identity.advertise).ip,
        dataPath: () => this.#identity.dataPath,
        tls: () => this.#tls,
        told: (message, answer) => {
          applyNetworkNews(overlays, message, answer);
          this.#hear(message, answer);
          agent.hear(message, answer);
        },
      },
    );
    overlays.attachments.use(() => undefined); // until the first session
    this.#renewLater();
    return this.#session;
  }

  /** Goes on after a start of the daemon: a manager's etcd may take its time, or have no quorum. */
  async resume(): Promise<void> {
    if (this.#identity.raft === undefined) {
      if (this.#identity.role === 'worker') this.#needs.folder.unseal(); // the last daemon ended before it
      this.begin();
      // A daemon that was killed while it became a manager.
      if (this.#identity.role === 'manager') this.#takeRoleLater('manager');
      return;
    }
    const manager = this.newManager();
    this.#manager = manager;
    await manager.listen();
    this.#needs.background.untilDone('start the manager', {}, async () => {
      if (!this.#isEnding && this.#manager === manager) await manager.startEtcd();
    });
    await manager.follow();
    this.begin(manager);
  }

  /** Follows a role from the leader, after earlier ones; a failure is logged, and tried again. */
  async takeRole(role: NodeRole): Promise<void> {
    await this.#inOrder(role, async () => await this.#change(role));
  }

  async #inOrder(role: NodeRole, change: () => Promise<void>): Promise<void> {
    const before = this.#changing;
    const take = async (): Promise<void> => {
      await before;
      try {
        if (!this.#isEnding) await change();
        this.#roleProblem = '';
      } catch (error) {
        this.#roleProblem = messageOf(error);
        this.#needs.log.warn({ err: error, role }, 'the node could not take its role');
        if (!this.#isEnding) this.#session?.renew(); // its welcome names the wanted role again
      }
    };
    this.#changing = take();
    await this.#changing;
  }

  /** A new certificate by the role that the leader has stored, then what belongs to the role. */
  async renew(): Promise<void> {
    const { publicKey, privateKey, csr } = newRequest();
    const body = { publicKey, csr };
    const request = { path: '/v1/certificates', body, answer: CertificateAnswer, milliseconds: ASK_TIMEOUT_MS };
    const { role, certificate, issuer } = await askLeader(this.#asking, request);
    this.#use({ role, certificate, key: privateKey, issuer });
    this.#renewLater(MIN_RENEWAL_DELAY_MS);
  }

  /** Takes another certificate or root, and tells the leader. */
  #use(changes: Partial<Identity>): void {
    this.change(changes);
    this.client.use(this.#identity);
    this.#manager?.use(this.#identity);
    this.#tellTls?.();
  }

  get #tls(): { root: string; issuer: string } {
    const { issuer, root } = this.#identity;
    return { root: trustDigest(root), issuer: issuer ?? issuerDigest(root) };
  }

  /** Follows the leader's word on roots, by a certificate of the issuer that it names. */
  #follow({ root, issuer }: Extract<FromLeader, { say: 'trust' }>, answer: (message: FromNode) => void): void {
    this.#tellTls = () => answer({ say: 'tls', tls: this.#tls });
    if (root !== this.#identity.root) this.#use({ root });
    if (issuer === this.#tls.issuer) return;
    // Not all nodes at once.
    this.#needs.background.after(Math.random() * MAX_ROTATION_DELAY_MS, 'follow another root', {}, () => {
      this.#needs.background.untilDone('follow another root', {}, async () => {
        if (!this.#isEnding && issuer !== this.#tls.issuer) await this.renew();
      });
    });
  }

  /** Stores what has changed of the identity. */
  change(changes: Partial<Identity>): void {
    this.#identity = { ...this.#identity, ...changes };
    this.#needs.folder.write(this.#identity);
  }

  /** The node's tasks stay as they are, whatever happens to their containers: the daemon ends. */
  async holdTasks(): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]();
  }

  /** Ends the session and the node's tasks. */
  async endTasks(): Promise<void> {
    await this.#session?.[Symbol.asyncDispose]();
    this.#needs.engine.networks.overlays.withdrawals.use(undefined);
    await (this.#agent ?? this.#newAgent()).leave(); // a locked manager has none
  }

  /** Says goodbye to the leader; throws if no manager hears it in this time. */
  async sayGoodbye(milliseconds: number): Promise<void> {
    await this.#manager?.resign();
    const request = { path: '/v1/leave', body: {}, answer: Type.Object({}), milliseconds };
    await askLeader(this.#asking, request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#renewal?.[Symbol.dispose]();
    await this.#session?.[Symbol.asyncDispose]();
    await this.holdTasks();
    await this.#manager?.[Symbol.asyncDispose]();
    if (this.#starting !== this.#manager) await this.#starting?.[Symbol.asyncDispose]();
    this.client[Symbol.dispose]();
    await this.#changing;
  }

  #newAgent(): Agent {
    return new Agent(this.#needs.engine, this.#identity.nodeId, async (number) => {
      const request = encodeURIComponent(JSON.stringify({ number }));
      return await upgradeToLeader(this.client, this.managers, `/v1/logs/publish?request=${request}`);
    });
  }

  get #asking(): Asking {
    return { client: this.client, clock: this.#needs.clock, managers: () => this.managers };
  }

  #hear(message: FromLeader, answer: (message: FromNode) => void): void {
    if (message.say === 'welcome' || message.say === 'managers') {
      if (message.managers.length > 0) this.#keep({ managers: message.managers });
    }
    if (message.say === 'welcome' && message.tunnelPort !== this.#identity.tunnelPort) {
      this.#keep({ tunnelPort: message.tunnelPort });
      this.#needs.engine.networks.closePorts();
    }
    const { manager } = this;
    if (message.say === 'welcome' && message.hasEtcd === false && message.role === 'manager' && manager !== undefined) {
      this.#needs.background.run('become a manager again', {}, async () => await this.#beginAgain(manager));
    }
    if (message.say === 'welcome' || message.say === 'role') {
      const isManager = this.#identity.role === 'manager' && this.#manager !== undefined;
      if ((message.role === 'manager') !== isManager || message.role !== this.#identity.role) {
        this.#takeRoleLater(message.role);
      }
    }
    if (message.say === 'welcome') this.#tellTls = undefined;
    if (message.say === 'trust') this.#follow(message, answer);
    if (message.say === 'renew')
      this.#needs.background.run('renew the certificate', {}, async () => await this.renew());
  }

  /** The leader's news count at once; where the disk is full they are stored later. */
  #keep(news: Partial<Identity>): void {
    if (isDeepStrictEqual({ ...this.#identity, ...news }, this.#identity)) return;
    this.#identity = { ...this.#identity, ...news };
    this.#needs.background.untilDone('store news of the cluster', {}, () => {
      if (!this.#isEnding) this.#needs.folder.write(this.#identity);
    });
  }

  #takeRoleLater(role: NodeRole): void {
    this.#needs.background.run('take a role', { role }, async () => await this.takeRole(role));
  }

  /** The leader has removed this manager's etcd, such as for a daemon that came back too late: all is read anew from the others. */
  async #beginAgain(removed: Manager): Promise<void> {
    await this.#inOrder('manager', async () => {
      if (this.#manager !== removed || (await removed.hasQuorum())) return;
      this.#needs.log.warn('the etcd of this manager has been removed: it becomes one again');
      await this.#becomeWorker();
      await this.#change('manager');
    });
  }

  async #change(role: NodeRole): Promise<void> {
    if (this.#identity.role !== role) await this.renew();
    if (this.#identity.role !== role) return; // the leader has changed its mind
    if (role === 'manager' && this.#manager === undefined) await this.#becomeManager();
    else if (role === 'worker' && (this.#manager ?? this.#identity.joining) !== undefined) await this.#becomeWorker();
    else return;
    this.#session?.renew();
  }

  /**
   * Its etcd runs until the leader says that it is no member: it may be one before an answer says so, and the cluster may
   * have no quorum without it, also when the daemon is killed meanwhile.
   */
  async #becomeManager(): Promise<void> {
    const manager = this.newManager();
    await using undo = new AsyncDisposableStack();
    undo.use(manager);
    await manager.listen();
    const joining = this.#identity.joining ?? (await requestPlace(this.#asking, this.#identity, this.#needs.folder));
    this.change({ joining });
    const { raft, members } = joining;
    const over = new AbortController();
    const late = (error: unknown): void => {
      if (this.#isEnding) throw error;
      this.#needs.log.info({ reason: String(error) }, "waiting for this node's etcd to be promoted");
    };
    try {
      await Promise.all([
        manager.startEtcd({ state: 'existing', members }, START_TIMEOUT_MS),
        awaitVote(this.#asking, over.signal, late),
      ]);
    } catch (error) {
      await undo.disposeAsync();
      if (error instanceof EngineError && error.kind === 'notFound') await this.#becomeWorker(); // the leader knows no etcd of it
      throw error;
    } finally {
      over.abort();
    }
    await manager.follow();
    undo.move();
    const { joining: _joining, ...rest } = this.#identity;
    this.#identity = rest;
    this.change({ raft });
    this.#manager = manager;
  }

  /** Nothing of a manager stays, nor of the way to become one. */
  async #becomeWorker(): Promise<void> {
    const manager = this.#manager;
    this.#manager = undefined;
    const { raft: _raft, joining: _joining, ...rest } = this.#identity;
    this.#identity = rest;
    this.change({});
    await manager?.[Symbol.asyncDispose]();
    this.#needs.folder.removeEtcd();
    if (this.#identity.role === 'worker') this.#needs.folder.unseal(); // workers are not locked
  }

  #renewLater(leastMs = 0): void {
    const { validFromDate, validToDate } = new X509Certificate(this.#identity.certificate);
    const lifeMs = validToDate.getTime() - validFromDate.getTime();
    const share = RENEW_FROM + Math.random() * (RENEW_UNTIL - RENEW_FROM);
    const dueMs = validFromDate.getTime() + lifeMs * share - this.#needs.clock.now().epochMilliseconds;
    this.#renewal?.[Symbol.dispose]();
    this.#renewal = this.#needs.background.after(Math.max(dueMs, leastMs), 'renew the certificate', {}, async () => {
      try {
        await this.renew();
      } catch (error) {
        this.#renewal = this.#needs.clock.after(RENEWAL_RETRY_DELAY_MS, () => this.#renewLater());
        throw error;
      }
    });
  }
}
