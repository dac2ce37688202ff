import type { Engine } from '../engine.ts';
import { DEFAULT_VXLAN_PORT } from '../host/network/vxlan.ts';
import { settlesWithin } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import type { ClosedPort } from '../networks/bridge/rules/ruleset.ts';
import type { ClusterNetworks } from '../networks/overlay/cluster-networks.ts';
import type { AgentNeeds } from './agent/needs.ts';
import { parseUnlockKey } from './keys/unlock-key.ts';
import {
  advertiseAddress,
  dataPathAddress,
  listenAddress,
  readAddress,
  tunnelPort,
  type Address,
} from './membership/addresses.ts';
import type { DescriptionNeeds } from './membership/description.ts';
import { MemberFolder, type Identity } from './membership/identity.ts';
import { initCluster, forceNewCluster, type InitRequest } from './membership/init.ts';
import { joinCluster } from './membership/join.ts';
import type { Manager } from './membership/manager.ts';
import { Member, type MemberNeeds } from './membership/member.ts';
import { endLeftEtcd } from './membership/own-etcd.ts';
import { managerNetworks } from './networks/manager-networks.ts';
import { clusterOf } from './state/view.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'config' | 'events' | 'locks' | 'log'> &
  DescriptionNeeds & {
    /** All parts, once they exist. */
    engine: () => AgentNeeds;
  };
type Addresses = Readonly<{ listen: string; advertise: string; dataPath: string }>;
type JoinRequest = Addresses & Readonly<{ remotes: readonly string[]; token: string }>;

const OUTSIDE =
  'This node is not a swarm manager. Use "docker swarm init" or "docker swarm join" to connect this node to swarm and try again.';
const WORKER =
  "This node is not a swarm manager. Worker nodes can't be used to view or modify cluster state. Please run this command on a manager node or promote the current node to a manager.";
const INSIDE =
  'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.';
/** dockerd's words. */
export const LOCKED =
  'Swarm is encrypted and needs to be unlocked before it can be used. Please use "docker swarm unlock" to unlock it.';
const LEAVE_LOCKED = 'Swarm is encrypted and locked. Please unlock it first or use `--force` to ignore this message.';
/** The first of several locked managers finds no quorum. */
const UNLOCK_TIMEOUT_SECONDS = 5;
const LEAVE_TIMEOUT_MS = 5000;
/** Links made by engines: their addresses are not reachable from other machines. */
const OF_NETWORKS = /^(?:br-|docker|gantry|veth)/;

/**
 * This daemon's place in the cluster, or outside of one. Outside it is no more than this object: all else is loaded
 * when the node becomes a member.
 */
export class Cluster implements AsyncDisposable {
  readonly #needs: Needs;
  /** Folder of the present membership, or of the last attempt. */
  #folder: MemberFolder;
  #member: Member | undefined;
  #locked: Identity | undefined;
  /** An init or join under way: ends with the daemon too. */
  #underWay: AsyncDisposable | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#folder = new MemberFolder(needs.config);
  }

  /** Undefined outside of a cluster. */
  get member(): Member | undefined {
    return this.#member;
  }

  /** The identity, without its key, of a manager that waits for its unlock key. */
  get locked(): Identity | undefined {
    return this.#locked;
  }

  /** Resumes the membership of the last daemon; removes what an interrupted attempt left. */
  async resume(): Promise<void> {
    if (!this.#folder.exists) return this.#needs.engine().networks.overlays.keepOnly([]);
    const identity = this.#folder.read();
    if (identity === undefined) {
      await endLeftEtcd(this.#memberNeeds);
      this.#removeFiles();
      return;
    }
    this.#folder.settle();
    if (this.#folder.isLocked) {
      this.#needs.log.warn('this manager is locked: its containers go on, and "swarm unlock" makes it one again');
      this.#locked = identity;
      return await endLeftEtcd(this.#memberNeeds);
    }
    this.#member = new Member(this.#memberNeeds, identity);
    await this.#member.resume();
  }

  /** Goes on as a manager. Throws `unauthorized` for another key. */
  async unlock(text: string): Promise<void> {
    using _lock = await this.#needs.locks.hold('the cluster');
    if (this.#locked === undefined) {
      this.manager();
      throw new EngineError('conflict', 'swarm is not locked');
    }
    const identity = this.#folder.unlock(parseUnlockKey(text));
    if (identity === undefined) {
      throw new EngineError('unauthorized', 'swarm could not be unlocked: invalid key provided');
    }
    const member = new Member(this.#memberNeeds, identity);
    try {
      await member.resume();
    } catch (error) {
      await member[Symbol.asyncDispose]();
      this.#folder.lockAgain();
      throw new EngineError('failed', `swarm component could not be started: ${messageOf(error)}`, { cause: error });
    }
    this.#member = member;
    this.#locked = undefined;
    await settlesWithin(member.welcomed, UNLOCK_TIMEOUT_SECONDS, this.#needs.clock);
  }

  /** The id of the new node. */
  async init(
    request: Addresses & Pick<InitRequest, 'pools' | 'signing' | 'spec'> & { force: boolean; dataPathPort: number },
  ): Promise<string> {
    using _lock = await this.#needs.locks.hold('the cluster');
    if (this.#member !== undefined && request.force) return await this.#forceNew(this.#member);
    if (this.#locked !== undefined && request.force) throw new EngineError('notInCluster', WORKER);
    this.#refuseInside();
    this.#beginFolder();
    this.#member = await initCluster(this.#memberNeeds, {
      ...this.#resolve(request),
      tunnelPort: tunnelPort(request.dataPathPort),
      spec: request.spec,
      signing: request.signing,
      pools: request.pools,
    });
    this.#closePorts();
    return this.#member.identity.nodeId;
  }

  async join(request: JoinRequest): Promise<void> {
    using _lock = await this.#needs.locks.hold('the cluster');
    this.#refuseInside();
    this.#beginFolder();
    this.#member = await joinCluster(this.#memberNeeds, { ...request, ...this.#resolve(request) });
    this.#closePorts();
  }

  /** Without `force` a manager stays. A node that cannot tell the others leaves too: nothing of the cluster stays here. */
  async leave(force: boolean): Promise<void> {
    using _lock = await this.#needs.locks.hold('the cluster');
    const locked = this.#locked;
    if (locked !== undefined && !force) throw new EngineError('notInCluster', LEAVE_LOCKED);
    const member = this.#member ?? (locked === undefined ? undefined : new Member(this.#memberNeeds, locked));
    if (member === undefined) throw new EngineError('notInCluster', 'This node is not part of a swarm');
    if (!force && member.manager !== undefined) throw new EngineError('notInCluster', leaveWarning(member.manager));
    await member.endTasks();
    try {
      if (locked === undefined && member.identity.managers.some(({ id }) => id !== member.identity.nodeId))
        await member.sayGoodbye(LEAVE_TIMEOUT_MS);
    } catch (error) {
      this.#needs.log.warn({ err: error }, 'the node left its cluster without a word to the leader');
    }
    this.#folder.forget(); // a daemon that is killed from here on is in no cluster
    await member[Symbol.asyncDispose](); // its etcd writes into the folder until then
    this.#removeFiles();
    this.#needs.engine().networks.overlays.attachments.use(undefined);
    this.#needs.engine().networks.overlays.keepOnly([]);
    this.#member = undefined;
    this.#locked = undefined;
    this.#closePorts();
  }

  /** Before the containers are stopped because the daemon ends: that is no end of their tasks. */
  async holdTasks(): Promise<void> {
    await this.#member?.holdTasks();
  }

  /** The cluster's networks, for managers. */
  async networks(): Promise<ClusterNetworks | undefined> {
    const manager = this.#member?.manager;
    if (manager === undefined) return undefined;
    await manager.fresh();
    return managerNetworks(manager);
  }

  /** The network of the cluster that has this name or id, as far as a manager knows. */
  network(ref: string): { isAttachable: boolean } | undefined {
    const networks = this.#member?.manager?.replica.all('network');
    const found = networks?.find(({ id, name }) => id === ref || name === ref);
    return found === undefined ? undefined : { isAttachable: found.attachable === true };
  }

  /** The ports of this node for other nodes: containers do not reach them. None outside of a cluster. */
  get closedPorts(): readonly ClosedPort[] {
    const identity = this.#member?.identity ?? this.#folder.read();
    if (identity === undefined) return [];
    const { port } = readAddress(identity.listen);
    const ofManagers = [port, port + 1].map((one) => ({ protocol: 'tcp' as const, port: one }));
    return [...ofManagers, { protocol: 'udp', port: this.tunnelPort }];
  }

  /** The port of the tunnels between nodes. */
  get tunnelPort(): number {
    return (this.#member?.identity ?? this.#folder.read())?.tunnelPort ?? DEFAULT_VXLAN_PORT;
  }

  /** Throws on workers, locked managers and outside of a cluster. */
  manager(): Manager {
    if (this.#locked !== undefined) throw new EngineError('notInCluster', LOCKED);
    if (this.#member === undefined) throw new EngineError('notInCluster', OUTSIDE);
    const { manager } = this.#member;
    if (manager === undefined) throw new EngineError('notInCluster', WORKER);
    return manager;
  }

  /** The records with all writes up to now, and the leader's id. Throws on workers and outside of a cluster. */
  async reading(): Promise<{ replica: Manager['replica']; leader: string | undefined }> {
    const manager = this.manager();
    await manager.fresh();
    return { replica: manager.replica, leader: manager.leader?.node };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#underWay?.[Symbol.asyncDispose]();
    await this.#member?.[Symbol.asyncDispose]();
  }

  #refuseInside(): void {
    if ((this.#member ?? this.#locked) !== undefined) throw new EngineError('notInCluster', INSIDE);
  }

  #closePorts(): void {
    this.#needs.engine().networks.closePorts();
  }

  get #memberNeeds(): MemberNeeds {
    const begun = (part: AsyncDisposable): void => void (this.#underWay = part);
    return { ...this.#needs, folder: this.#folder, begun, engine: this.#needs.engine() };
  }

  /** A new membership begins without files of the last one: etcd would go on with its data. */
  #beginFolder(): void {
    if (this.#folder.exists && !this.#removeFiles()) {
      throw new EngineError('failed', 'files of an earlier cluster could not be removed from this node: see its log');
    }
    this.#folder = new MemberFolder(this.#needs.config);
  }

  /** Logs a failure: the next init, join or start of the daemon tries again. */
  #removeFiles(): boolean {
    try {
      this.#folder.remove();
      return true;
    } catch (error) {
      this.#needs.log.error({ err: error }, 'files of an earlier cluster could not be removed');
      return false;
    }
  }

  #resolve({ listen, advertise, dataPath }: Addresses): { listen: Address; advertise: Address; dataPath?: string } {
    const own = listenAddress(listen);
    const isOurs = (name: string): boolean => name === this.#needs.config.bridge || OF_NETWORKS.test(name);
    const others = advertiseAddress(advertise, own, isOurs);
    return { listen: own, advertise: others, dataPath: dataPathAddress(dataPath) };
  }

  async #forceNew(member: Member): Promise<string> {
    const { manager } = member;
    if (manager === undefined) throw new EngineError('notInCluster', WORKER);
    const cluster = clusterOf(manager.replica);
    this.#member = await forceNewCluster(this.#memberNeeds, member, cluster, [...manager.replica.all('node')]);
    return this.#member.identity.nodeId;
  }
}

/** dockerd's warning of what is lost. */
function leaveWarning({ replica }: Manager): string {
  const managers = [...replica.all('node')].filter(({ manager }) => manager !== undefined).length;
  const start = 'You are attempting to leave the swarm on a node that is participating as a manager.';
  if (managers <= 1) {
    return `${start} Removing the last manager erases all current state of the swarm. Use \`--force\` to ignore this message. `;
  }
  const left = managers - 1;
  const count = `Removing this node leaves ${left} managers out of ${managers}.`;
  const hint = 'Use `--force` to suppress this message. ';
  if (left > Math.floor(managers / 2)) return `${start} ${count} ${hint}`;
  const lost =
    'Without a Raft quorum your swarm will be inaccessible. The only way to restore a swarm that has lost consensus is to reinitialize it with `--force-new-cluster`.';
  return `${start} ${count} ${lost} ${hint}`;
}
