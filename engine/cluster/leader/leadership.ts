import type { Duplex } from 'node:stream';

import type { Logger } from 'pino';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { crossSignExternally } from '../ca/external-cross-sign.ts';
import { signExternally } from '../ca/external.ts';
import { externalsFor, issuingAuthority, rootToCrossSign } from '../ca/rotation.ts';
import { newClusterId } from '../ca/token.ts';
import { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { Etcd } from '../etcd/gateway.ts';
import { sealCluster } from '../keys/sealed-cluster.ts';
import { LogBroker } from '../logs/broker.ts';
import { dropAttachments } from '../networks/attachments.ts';
import { NetworkPush } from '../networks/push.ts';
import { Orchestration } from '../orchestrator/orchestration.ts';
import { refuseOldVersion } from '../state/draft.ts';
import type { ClusterRecord, NodeRole } from '../state/records.ts';
import type { Replica } from '../state/replica.ts';
import { clusterOf } from '../state/view.ts';
import { updateCluster } from '../swarm/update.ts';
import { NotLeader } from '../wire/client.ts';
import type { CertificateAnswer, CertificateRequest, PeerAnswer } from '../wire/schemas.ts';
import type { Peer } from '../wire/server.ts';
import { Batches, LeadershipLost } from './batches.ts';
import { certificateHolder, giveCertificate } from './certificates.ts';
import { Outage } from './outage.ts';
import { Peers } from './peers.ts';
import { Roles } from './roles.ts';
import { Sessions } from './sessions.ts';
import { Turns, type Decisions, type Work } from './turns.ts';
import type { Write, WriteArguments, WriteName, WriteResult } from './write-schemas.ts';
import { STAGES, WRITES } from './writes.ts';

type LeadershipNeeds = Pick<Engine, 'background' | 'clock' | 'log'> &
  Readonly<{
    etcd: Etcd;
    replica: Replica;
    /** Its own id. */
    node: string;
    /** Its certificate, for external authorities. */
    identity: () => Readonly<{ certificate: string; key: string }>;
    /** The key of secrets and configs. */
    dataKey: () => Promise<Buffer>;
    /** The key of secrets and configs, if this manager has it. */
    knownDataKey: () => Buffer | undefined;
    /** Gives leadership up to another manager. */
    resign: () => Promise<void>;
  }>;

/** The revision of the transaction that made it the leader, and its lease. */
type Elected = Readonly<{ leaderRevision: number; leaseMs: number }>;

/** Work of the leader alone, from its election to its end. */
export class Leadership implements AsyncDisposable {
  readonly turns: Turns;
  readonly outage = new Outage();
  readonly logs: LogBroker;
  readonly #needs: LeadershipNeeds;
  readonly #dispatcher: Dispatcher;
  readonly #networks: NetworkPush;
  readonly #sessions: Sessions;
  readonly #peers: Peers;
  readonly #roles: Roles;

  constructor(needs: LeadershipNeeds, elected: Elected, lost: (reason: LeadershipLost) => void) {
    const { etcd, clock, log, replica } = needs;
    this.#needs = needs;
    const batches = new Batches(etcd, clock, elected, (cluster) => sealCluster(cluster, needs.knownDataKey));
    this.turns = new Turns({ batches, replica, clock, log, decisions: () => decisionsOver(replica, log) }, lost);
    // First: a node knows a network when it gets the first task in it.
    this.#networks = new NetworkPush(needs);
    this.#dispatcher = new Dispatcher({ replica, turns: this.turns });
    this.logs = new LogBroker(needs); // after the dispatcher: a node knows a task before it is asked for its log
    const toNodes = { networks: this.#networks, dispatcher: this.#dispatcher, logs: this.logs };
    this.#sessions = new Sessions({ ...needs, turns: this.turns, ...toNodes });
    this.#peers = new Peers({ ...needs, turns: this.turns, greetAgain: (node) => this.#sessions.end(node) });
    this.#roles = new Roles({
      ...needs,
      turns: this.turns,
      removePeer: async (node) => await this.#peers.remove(node),
      tell: (node, role) => this.#sessions.tell(node, { say: 'role', role }),
    });
    this.turns.look();
  }

  /** A write of the API. Throws `NotLeader` where another leader may do it, as nothing has been stored. */
  async write<N extends WriteName>({ write, args }: Write<N>): Promise<{ result: WriteResult<N>; revision: number }> {
    if (write === 'updateCluster') await this.#needs.dataKey(); // a record with locked managers is encrypted
    const operation = await this.#operation({ write, args });
    const before = new Set(this.#needs.replica.all('node').map(({ id }) => id));
    const done = await this.#stored((draft, now) => operation(draft, now));
    for (const id of before) if (this.#needs.replica.get('node', id) === undefined) this.#sessions.end(id);
    return done;
  }

  async certificate(request: CertificateRequest, peer: Peer | undefined): Promise<CertificateAnswer> {
    const elsewhere = await this.#signedElsewhere(request, peer);
    const { result } = await this.turns.write((draft, now) => giveCertificate(draft, request, peer, now, elsewhere));
    return result;
  }

  openSession(peer: Peer, socket: Duplex): void {
    this.#sessions.open(peer.id, socket);
  }

  async addPeer(node: string, request: { address: string; url: string; publicKey: string }): Promise<PeerAnswer> {
    return await this.#peers.add(node, request);
  }

  async promotePeer(node: string): Promise<void> {
    await this.#peers.promote(node);
  }

  /** A node says goodbye. */
  async leave(node: string): Promise<void> {
    if (node === this.#needs.node) {
      await this.#needs.resign();
      throw new EngineError('unavailable', 'another manager has to lead first');
    }
    await this.#peers.remove(node);
    await this.turns.write((draft, now) => {
      const record = draft.get('node', node);
      if (record === undefined) return;
      dropAttachments(draft, node);
      const status = { ...record.status, state: 'down' as const, message: 'the node has left' };
      draft.put('node', {
        ...record,
        status,
        spec: { ...record.spec, role: 'worker' },
        role: 'worker',
        updatedAt: now.toString(),
      });
    });
    this.#sessions.end(node);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#roles[Symbol.dispose]();
    this.#peers[Symbol.dispose]();
    this.#sessions[Symbol.dispose]();
    this.logs[Symbol.dispose]();
    this.#dispatcher[Symbol.dispose]();
    this.#networks[Symbol.dispose]();
    await this.turns[Symbol.asyncDispose]();
  }

  /** An update of the cluster may need an external authority's certificate of the next root first. */
  async #operation<N extends WriteName>({ write, args }: Write<N>): Promise<Work<WriteResult<N>>> {
    const operation = WRITES[write];
    if (write !== 'updateCluster') return (draft, now) => operation(draft, args, now);
    const update = args as WriteArguments<'updateCluster'>;
    const rotation = await this.#crossSignedElsewhere(update);
    return (draft, now) => updateCluster(draft, update, now, rotation) as WriteResult<N>;
  }

  async #crossSignedElsewhere({
    spec,
    version,
    signing = { certificate: '', key: '' },
  }: WriteArguments<'updateCluster'>): Promise<ClusterRecord['rotation']> {
    const { clock, identity, replica } = this.#needs;
    const cluster = clusterOf(replica);
    refuseOldVersion(cluster, version);
    const root = rootToCrossSign(cluster, spec, signing, clock.now());
    if (root === undefined) return undefined;
    const { certificate } = cluster.ca;
    const externals = externalsFor(cluster.spec, certificate, cluster);
    const asking = { clock, root: certificate, identity: identity() };
    return { root, crossSigned: await crossSignExternally(asking, externals, root) };
  }

  async #stored<T>(work: Work<T>): Promise<{ result: T; revision: number }> {
    try {
      return await this.turns.write(work);
    } catch (error) {
      if (error instanceof LeadershipLost && error.isUndone) throw new NotLeader(undefined);
      throw error;
    }
  }

  /** Undefined where the cluster signs by itself. */
  async #signedElsewhere(
    request: CertificateRequest,
    peer: Peer | undefined,
  ): Promise<{ role: NodeRole; certificate: string } | undefined> {
    const { clock, identity, replica } = this.#needs;
    const cluster = clusterOf(replica);
    const { certificate: root, chain } = issuingAuthority(cluster);
    const externals = externalsFor(cluster.spec, root, cluster);
    if (externals.length === 0) return undefined;
    const { node, role } = certificateHolder(replica, request, peer, clock.now());
    const subject = { name: node.id, unit: `swarm-${role}`, organization: cluster.id };
    const asking = { clock, root, identity: identity() };
    return { role, certificate: (await signExternally(asking, externals, { ...request, subject })) + chain };
  }
}

function decisionsOver(replica: Replica, log: Logger): Decisions {
  const orchestration = new Orchestration(replica, newClusterId, (about, error) => {
    log.error({ err: error, ...about }, 'the leader failed to decide on tasks, retrying');
  });
  return {
    run: (draft, now) => {
      for (const stage of STAGES) stage(draft, now);
      return orchestration.run(draft, now);
    },
  };
}
