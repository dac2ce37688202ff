import { PassThrough, type Readable } from 'node:stream';

import { Type } from 'typebox';

import type { Engine } from '../../engine.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { revocationList } from '../ca/certificates.ts';
import { firstCertificate } from '../ca/rotation.ts';
import { SPARE_BYTES, EtcdMaintenance } from '../etcd/etcd-maintenance.ts';
import { QUOTA_BYTES, type FirstStart } from '../etcd/flags.ts';
import { Etcd, EtcdError } from '../etcd/gateway.ts';
import { raftOf } from '../etcd/members.ts';
import { EtcdProcess } from '../etcd/process.ts';
import { DataKey } from '../keys/data-key.ts';
import { openCluster } from '../keys/sealed-cluster.ts';
import { parseUnlockKey } from '../keys/unlock-key.ts';
import { LeadershipLost, NO_QUORUM } from '../leader/batches.ts';
import { Election } from '../leader/election.ts';
import { Leadership } from '../leader/leadership.ts';
import type { Write, WriteArguments, WriteName, WriteResult } from '../leader/write-schemas.ts';
import { SecretEvents } from '../secrets/events.ts';
import { Feed } from '../state/feed.ts';
import { SEQUENCE_KEY } from '../state/keys.ts';
import type { ClusterRecord, ClusterSpec } from '../state/records.ts';
import { Replica } from '../state/replica.ts';
import { clusterOf } from '../state/view.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';
import type { LogRequest } from '../wire/log-messages.ts';
import { WireServer, type Peer } from '../wire/server.ts';
import { readAddress } from './addresses.ts';
import { EtcdService } from './etcd-service.ts';
import { forwardWrite } from './forward-write.ts';
import type { Identity, MemberFolder } from './identity.ts';
import { managerRoutes, managerUpgrades } from './manager-routes.ts';
import { etcdSettings } from './own-etcd.ts';

export type ManagerNeeds = Pick<Engine, 'background' | 'clock' | 'config' | 'events' | 'log'> &
  Readonly<{
    folder: MemberFolder;
    client: WireClient;
    /** Stores the settings of its etcd, for its next start. */
    keepRaft: (raft: ClusterSpec['raft']) => void;
  }>;

/** A write that is stored: its result, and the revision that shows it. */
type Stored<N extends WriteName> = Readonly<{ result: WriteResult<N>; revision: number }>;

const READ_TIMEOUT_MS = 1000;
const WRITE_TIMEOUT_MS = 5000;
const RETRY_DELAY_MS = 50;
const PingAnswer = Type.Object({ node: Type.String() });

/** A manager: port 2377, an etcd, all records in memory, and at times the leadership. */
export class Manager implements AsyncDisposable {
  readonly replica: Replica;
  readonly #needs: ManagerNeeds;
  readonly #process: EtcdProcess;
  readonly #etcd: Etcd;
  readonly #service: EtcdService;
  readonly #parts = new AsyncDisposableStack();
  readonly #dataKey: DataKey;
  #identity: Identity;
  #server: WireServer | undefined;
  #feed: Feed | undefined;
  #election: Election | undefined;
  #leadership: Leadership | undefined;
  #isEnding = false;

  constructor(needs: ManagerNeeds, identity: Identity, raft: ClusterSpec['raft']) {
    this.#needs = needs;
    this.#identity = identity;
    this.replica = new Replica(needs.clock);
    this.#process = new EtcdProcess(needs, etcdSettings(needs, identity, raft));
    this.#etcd = this.#parts.use(new Etcd(this.#process.socketPath, needs.clock));
    const leading = (): Leadership | string | undefined => this.#leadership ?? this.leader?.address;
    this.#dataKey = new DataKey({ ...needs, replica: this.replica, node: identity.nodeId });
    this.#service = new EtcdService(needs, { node: identity.nodeId, leading });
  }

  get isLeader(): boolean {
    return this.#leadership !== undefined;
  }

  /** The address of the leading manager, as far as is known. */
  get leader(): { node: string; address: string } | undefined {
    return this.#feed?.leader;
  }

  get etcdPid(): number | undefined {
    return this.#process.pid;
  }

  /** Listens on the cluster's port; until `follow` it admits nobody. */
  async listen(): Promise<void> {
    const { ip, port } = readAddress(this.#identity.listen);
    try {
      this.#server = await WireServer.open({
        ip,
        port,
        identity: this.#identity,
        routes: managerRoutes(
          () => this.#identity,
          () => this.#leading(),
          () => this.#dataKey.known,
          () => this.replica.get('cluster', '')?.ca.certificate ?? firstCertificate(this.#identity.root),
        ),
        admits: (peer, who) => this.#admits(peer, who),
        upgrades: managerUpgrades(() => this.#leading()),
        clock: this.#needs.clock,
        log: this.#needs.log,
      });
      this.#parts.use(this.#server);
    } catch (error) {
      const reason = messageOf(error);
      throw new EngineError('failed', `manager stopped: failed to listen on remote API address: ${reason}`, {
        cause: error,
      });
    }
  }

  /** Starts etcd, or takes over the one that runs; it answers when this returns. */
  async startEtcd(first?: FirstStart, timeoutMs = 60_000): Promise<Etcd> {
    this.#needs.folder.lendPeerKey();
    await this.#process.start(first);
    const { clock } = this.#needs;
    const mayAnswer = (error: unknown): boolean => error instanceof EtcdError && !this.#isEnding;
    try {
      const settings = { clock, timeoutMs, delayMs: RETRY_DELAY_MS, isTransient: mayAnswer };
      await retry(settings, async () => await raftOf(this.#etcd, 1000));
      return this.#etcd;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      if (this.#isEnding) throw new EngineError('unavailable', 'this manager ends');
      throw new EngineError('failed', `etcd does not answer: ${this.#process.said}`);
    }
  }

  /** Whether its etcd is one of members that can write; one that was removed is not. */
  async hasQuorum(): Promise<boolean> {
    return await this.#service.isThere(this.#etcd);
  }

  /** From now on its records are etcd's, and it may lead. */
  async follow(): Promise<void> {
    const { clock, log } = this.#needs;
    const etcd = this.#etcd;
    const feed = this.#parts.use(
      new Feed({ clock, log, etcd, replica: this.replica, open: (cluster) => this.#open(cluster) }),
    );
    this.#feed = feed;
    this.#parts.use(new SecretEvents(this.#needs.events, this.replica));
    this.#parts.use(
      this.replica.onCommit(({ changes }) =>
        changes.some(({ kind }) => kind === 'cluster') ? this.#useCluster() : undefined,
      ),
    );
    this.#parts.use(
      new EtcdMaintenance(
        { ...this.#needs, etcd },
        {
          quotaBytes: QUOTA_BYTES,
          spareBytes: SPARE_BYTES,
          revision: () => this.replica.revision,
          inTurn: async (work) => await this.#service.inTurn(work),
        },
      ),
    );
    this.#election = this.#parts.use(
      new Election(
        { clock, log, etcd, feed },
        {
          node: this.#identity.nodeId,
          address: this.#identity.advertise,
          ping: async ({ address, node }, milliseconds) => await this.#ping(address, node, milliseconds),
          elected: (revision, leaseMs) => this.#lead(revision, leaseMs),
          ended: () => this.#leadNoMore(),
        },
      ),
    );
  }

  /** Takes the certificate of a renewed identity. */
  use(identity: Identity): void {
    this.#identity = identity;
    this.#server?.use(identity);
  }

  async resign(): Promise<void> {
    await this.#election?.resign();
  }

  /** A write of the API: done here where this manager leads, else forwarded. Its records are visible here when it returns. */
  async write<N extends WriteName>(write: N, args: WriteArguments<N>): Promise<WriteResult<N>> {
    const { result, revision } = await this.#reachLeader(async () => await this.#writeOnce({ write, args }));
    await this.replica.reached(revision, WRITE_TIMEOUT_MS);
    return result;
  }

  /** The key of secrets and configs. Throws `unavailable`. */
  async dataKey(): Promise<Buffer> {
    return await this.#dataKey.get();
  }

  /** Waits until all writes up to now, on any manager, are visible; without a quorum for a second only. */
  async fresh(): Promise<void> {
    if (this.#election?.isSure === true) return;
    try {
      const { revision } = await this.#etcd.get(SEQUENCE_KEY, READ_TIMEOUT_MS);
      await this.replica.reached(revision, READ_TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
    }
    if (this.replica.get('cluster', '') === undefined) throw new EngineError('unavailable', NO_QUORUM);
  }

  /** Ends, and etcd with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    await this.#parts.disposeAsync();
    await this.#process.stop();
    this.#needs.folder.takePeerKeyBack();
  }

  /** Lines of logs from the leader (`ReadLog`), until the stream is destroyed. */
  async openLogs(request: LogRequest): Promise<Readable> {
    return await this.#reachLeader(async () => {
      const { leader } = this;
      if (this.#leadership !== undefined) {
        const lines = new PassThrough();
        this.#leadership.logs.read(request, lines);
        return lines;
      }
      if (leader === undefined || leader.node === this.#identity.nodeId) throw new NotLeader(undefined);
      const path = `/v1/logs?request=${encodeURIComponent(JSON.stringify(request))}`;
      return await this.#needs.client.upgrade(leader.address, path, WRITE_TIMEOUT_MS);
    });
  }

  /** Asks again for a while where no manager leads, or it is not reached. */
  async #reachLeader<T>(work: () => Promise<T>): Promise<T> {
    try {
      const { clock } = this.#needs;
      return await retry({ clock, timeoutMs: WRITE_TIMEOUT_MS, delayMs: RETRY_DELAY_MS, isTransient }, work);
    } catch (error) {
      if (!isTransient(error)) throw error;
      throw new EngineError('unavailable', NO_QUORUM, { cause: error });
    }
  }

  /** Throws `NotLeader` if no manager leads, as far as is known. */
  async #writeOnce<N extends WriteName>(request: Write<N>): Promise<Stored<N>> {
    if (this.#leadership !== undefined) return await this.#leadership.write(request);
    const { leader } = this;
    if (leader === undefined || leader.node === this.#identity.nodeId) throw new NotLeader(undefined);
    return await forwardWrite({ ...this.#needs, feed: this.#feed }, leader.address, request);
  }

  #leading(): Leadership {
    if (this.#leadership === undefined) throw new NotLeader(this.leader?.address);
    return this.#leadership;
  }

  /** The certificate says what a node was, its record what it is. */
  #admits({ id, role }: Peer, who: 'node' | 'manager'): boolean {
    const node = this.replica.get('node', id);
    return node !== undefined && (who === 'node' || (role === 'manager' && node.role === 'manager'));
  }

  #lead(revision: number, leaseMs: number): void {
    this.#needs.background.run('begin to lead', {}, async () => {
      const isKnown = await this.replica.reached(revision, Math.max(WRITE_TIMEOUT_MS, leaseMs));
      if (this.#election?.revision !== revision) return;
      if (!isKnown) return this.#election.stepDown('it does not know yet what the last leader wrote');
      if (!(await this.#opensCluster())) return this.#election?.stepDown('it does not have the key of the cluster yet');
      if (this.#election?.revision !== revision) return;
      const node = this.#identity.nodeId;
      const resign = async (): Promise<void> => await this.resign();
      const identity = (): Identity => this.#identity;
      const elected = { leaderRevision: revision, leaseMs };
      const dataKey = async (): Promise<Buffer> => await this.#dataKey.get();
      const knownDataKey = (): Buffer | undefined => this.#dataKey.known;
      const needs = {
        ...this.#needs,
        dataKey,
        knownDataKey,
        etcd: this.#etcd,
        replica: this.replica,
        node,
        identity,
        resign,
      };
      this.#leadership = new Leadership(needs, elected, ({ message }) => this.#election?.stepDown(message));
      await this.#makeDataKey(this.#leadership);
    });
  }

  #open<C extends ClusterRecord>(cluster: C): C {
    return openCluster(cluster, (digest) => this.#dataKey.of(digest));
  }

  /** Whether the record of the cluster can be read here; a manager that cannot must not lead. */
  async #opensCluster(): Promise<boolean> {
    if (clusterOf(this.replica).sealed === undefined) return true;
    await this.#fetchDataKey();
    return clusterOf(this.replica).sealed === undefined;
  }

  /** The first leader of a cluster of an earlier version makes the key of its secrets and configs. */
  async #makeDataKey({ turns }: Leadership): Promise<void> {
    if (this.replica.get('cluster', '')?.dataKey !== undefined) return;
    const dataKey = this.#dataKey.make();
    try {
      await turns.write((draft) => {
        const cluster = clusterOf(draft);
        if (cluster.dataKey === undefined) draft.put('cluster', { ...cluster, dataKey });
      });
    } catch (error) {
      if (!(error instanceof LeadershipLost)) throw error; // the next leader makes one
    }
  }

  #leadNoMore(): void {
    const leadership = this.#leadership;
    this.#leadership = undefined;
    if (leadership !== undefined) {
      this.#needs.background.run('end leadership', {}, async () => await leadership[Symbol.asyncDispose]());
    }
  }

  async #ping(address: string, node: string, milliseconds: number): Promise<boolean> {
    try {
      const answer = await this.#needs.client.ask(address, '/v1/ping', {}, PingAnswer, milliseconds);
      return answer.node === node;
    } catch (error) {
      if (error instanceof Error) return false; // it may answer, but not as the leader
      throw error;
    }
  }

  /** Gives etcd the cluster's list of revoked certificates, and its settings for the next start. */
  #useCluster(): void {
    this.#needs.background.untilDone('store the list of revoked certificates', {}, () => {
      if (this.#isEnding) return;
      const cluster = clusterOf(this.replica);
      if (cluster.sealed !== undefined) return; // it follows with the key
      if (cluster.unlockKey === undefined) this.#needs.folder.unseal();
      else this.#needs.folder.seal(parseUnlockKey(cluster.unlockKey));
      const crl = revocationList(cluster.peerCa, cluster.revokedPeers, this.#needs.clock.now());
      this.#needs.folder.writePeers({ crl });
    });
    if (this.#dataKey.known === undefined && clusterOf(this.replica).dataKey !== undefined) {
      this.#needs.background.run('fetch the key of secrets', {}, async () => await this.#fetchDataKey());
    }
    const { raft } = clusterOf(this.replica).spec;
    this.#process.use(etcdSettings(this.#needs, this.#identity, raft));
    this.#needs.keepRaft(raft);
  }

  async #fetchDataKey(): Promise<void> {
    try {
      await this.#dataKey.get();
      this.replica.open(this.#open(clusterOf(this.replica)));
    } catch (error) {
      if (!(error instanceof EngineError && error.kind === 'unavailable')) throw error;
      this.#needs.log.warn({ reason: error.message }, 'this manager cannot read secrets and configs yet');
    }
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof NotReached || error instanceof NotLeader;
}
