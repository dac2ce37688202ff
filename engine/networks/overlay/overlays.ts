import { withNetns } from '../../host/namespaces.ts';
import { addAddress } from '../../host/network/addresses.ts';
import { changeLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { settlesWithin, sleep } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { macOf } from '../addresses/address-leases.ts';
import type { Command } from '../dns/commands.ts';
import type { MadeEndpoint, NewEndpoint } from '../drivers/driver.ts';
import type { Place } from '../endpoints/endpoint.ts';
import { applySysctls } from '../endpoints/interface-options.ts';
import { freeInterfaceName } from '../endpoints/interfaces.ts';
import type { Networks } from '../networks.ts';
import type { NetworkRecord } from '../store.ts';
import { Fabrics } from './fabrics.ts';
import { Attachments, type Applicant } from './members/attachments.ts';
import { MemberStore } from './members/member-store.ts';
import {
  checkedMembers,
  remoteIn,
  tasksIn,
  type Member,
  type NetworkNewsMessage,
  type TaskMember,
} from './members/members.ts';
import { OverlayNames } from './members/names.ts';
import { Withdrawals } from './members/withdrawals.ts';
import { recordOf, subnetOf } from './record.ts';
import { Ingress, INGRESS_SANDBOX } from './services/ingress.ts';
import { OverlaySandboxes } from './services/sandboxes.ts';

const ANNOUNCEMENT_TIMEOUT_MS = 10_000;
/** For short requests that are under way to a task that ends. */
const WITHDRAWAL_MS = 500;

/** Enough for what one commit, or one end, says. */
const SETTLE_MS = 5;

type Waiter = () => void;

/** The networks of the cluster that have a part on this node, by what the leader says of them. */
export class Overlays implements Disposable {
  readonly attachments: Attachments;
  readonly withdrawals: Withdrawals;
  readonly #networks: Networks;
  readonly #members: MemberStore;
  readonly #fabrics: Fabrics;
  readonly #sandboxes = new OverlaySandboxes();
  readonly #ingress: Ingress;
  readonly #names: OverlayNames;
  /** Tasks that are about to end, or have: no new clients for them, whatever the leader said last. */
  readonly #withdrawn = new Set<string>();
  /** Networks that end here as soon as no container is in them. */
  readonly #leaving = new Set<string>();
  readonly #unsettled = new Set<string>();
  #waiters: Waiter[] = [];

  constructor(networks: Networks, folder: string) {
    this.#networks = networks;
    this.#fabrics = new Fabrics(folder, networks.settings.log, networks.settings.tunnelPort);
    this.#names = new OverlayNames(() => networks.dns);
    this.#members = new MemberStore(networks.settings.db);
    this.attachments = new Attachments(networks.settings);
    this.withdrawals = new Withdrawals(networks.settings);
    this.#ingress = new Ingress(networks, { folder, lead: (network, remote) => this.#fabrics.lead(network, remote) });
  }

  /** At the daemon's start: what the kernel has goes on, and gets what changed meanwhile. */
  restore(): void {
    const { settings, store } = this.#networks;
    for (const network of store.networks()) {
      if (network.overlay === undefined) continue;
      for (const { id, containerId } of store.endpointsIn(network.id)) {
        const path = settings.netnsOf(containerId);
        if (path !== undefined) {
          this.#sandboxes.find(settings.nameOf(containerId) ?? containerId, path, { id, network: network.id });
        }
      }
      this.#settle(network.id);
    }
    this.attachments.keepOnly((id, ip) => store.endpointsIn(id).some(({ ipAddress }) => ipAddress === ip));
    // Fabrics of networks that were ending when the last daemon was killed.
    this.#fabrics.removeOthers((id) => store.network(id)?.overlay !== undefined, INGRESS_SANDBOX);
  }

  /** Applies the leader's news of a network. */
  hear({ id, whole, gone, members: sent }: NetworkNewsMessage): void {
    const { settings, store } = this.#networks;
    const { members, refused } = checkedMembers(sent);
    if (refused > 0)
      settings.log.warn({ network: id, refused }, 'ignoring invalid members of a network from the leader');
    settings.db.transaction(() => {
      const known = store.network(id);
      if (whole !== undefined) {
        store.saveNetwork(recordOf(whole.network, whole.local));
        const named = new Set(members.map((member) => member.id));
        for (const member of this.#members.in(id)) if (!named.has(member.id)) this.#members.delete(id, member.id);
      } else if (known === undefined) return; // it ended here meanwhile
      for (const member of members) this.#members.put(id, member);
      for (const member of gone) this.#members.delete(id, member);
    });
    for (const member of [...members.map((one) => one.id), ...gone]) this.#withdrawn.delete(member);
    this.#leaving.delete(id);
    this.#settleSoon(id);
    this.attachments.hear(id, members, this.#local(id));
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const tell of waiters) tell();
  }

  /** This node has no part in other networks any more; they end here when their last container does. */
  keepOnly(ids: readonly string[]): void {
    for (const { id, overlay } of this.#networks.store.networks()) {
      if (overlay === undefined || ids.includes(id)) continue;
      this.#leaving.add(id);
      this.#settle(id);
    }
  }

  /** The network settings of a task's container. Throws `failed` when its networks do not get known here. */
  async containerNetworks(
    addresses: readonly Readonly<{ network: string; address: string }>[],
  ): Promise<{ networkMode: string; endpoints: Record<string, { IPAMConfig: { IPv4Address: string } }> }> {
    const wanted = addresses.map(({ network, address }) => ({ network, ip: address.split('/')[0]! }));
    const { clock } = this.#networks.settings;
    const until = performance.now() + ANNOUNCEMENT_TIMEOUT_MS;
    for (;;) {
      const missing = wanted.find(({ network, ip }) => this.#taskHere(network, (task) => task.ip === ip) === undefined);
      if (missing === undefined) break;
      const leftMs = until - performance.now();
      if (leftMs <= 0) throw notAnnounced(missing.network);
      const news = Promise.withResolvers<void>();
      this.#waiters.push(news.resolve);
      await settlesWithin(news.promise, leftMs / 1000, clock);
    }
    const named = wanted.map(({ network, ip }) => ({ name: this.#networks.store.network(network)!.name, ip }));
    const endpoints = named.map(({ name, ip }) => [name, { IPAMConfig: { IPv4Address: ip } }] as const);
    return { networkMode: named[0]?.name ?? 'default', endpoints: Object.fromEntries(endpoints) };
  }

  /** Before a task ends: no new clients are led to it, here at once, and on other nodes when this resolves. Short requests end meanwhile. */
  async withdraw(taskId: string): Promise<void> {
    const concerned = [...this.#members.networks()].filter((id) => this.#members.get(id, taskId) !== undefined);
    if (concerned.length === 0) return;
    this.#withdrawn.add(taskId);
    for (const id of concerned) this.#settle(id);
    const hasClients = concerned.some((id) =>
      this.#members.in(id).some((one) => one.kind !== 'service' && one.id !== taskId),
    );
    if (!hasClients) return;
    await Promise.all([sleep(this.#networks.settings.clock, WITHDRAWAL_MS), this.withdrawals.heard(concerned)]);
  }

  /**
   * Gets a container that belongs to no task into a network of the cluster, and makes the network known here. Undefined
   * where it needs nothing: of a task, in a network of this node alone, and outside of a cluster. Throws to refuse.
   */
  async attach(applicant: Applicant): Promise<({ network: string } & Disposable) | undefined> {
    const { store } = this.#networks;
    if (!this.attachments.isInCluster) return undefined;
    const known = this.#networks.known(applicant.network);
    if (known !== undefined && known.overlay === undefined) return undefined;
    if (known !== undefined && this.#taskHere(known.id, ({ name }) => name === applicant.name) !== undefined) {
      return undefined;
    }
    const taken = await this.attachments.take({ ...applicant, network: known?.id ?? applicant.network });
    if (store.network(taken.network) !== undefined) return taken;
    taken[Symbol.dispose]();
    throw notAnnounced(taken.network);
  }

  /** Adds a container to a network. Throws where it is neither of a task nor attached. */
  join(network: NetworkRecord, wanted: NewEndpoint, netns: number): Place {
    const { containerName } = wanted;
    const task =
      this.#taskHere(network.id, ({ name }) => name === containerName) ??
      this.attachments.of(network.id, containerName);
    if (task === undefined) throw notAttachable(network.name, 'failed');
    const fabric = this.#fabrics.lead(network, remoteIn(this.#members.in(network.id), this.#local(network.id)));
    using inside = withNetns(netns, () => new Netlink());
    const link = freeInterfaceName(inside, wanted);
    const index = fabric.addPort(netns, link, task.ip);
    const { prefixLength } = subnetOf(network, task.ip);
    using undo = new DisposableStack();
    undo.defer(() => fabric.removePort(task.ip));
    inside.apply(changeLink(index, { up: true }), addAddress({ link: index, ip: task.ip, prefixLength }));
    applySysctls(netns, link, wanted);
    undo.move();
    this.#withdrawn.delete(task.id);
    this.#sandboxes.join(wanted.containerName, netns, { id: wanted.id, network: network.id });
    this.#sandboxes.balance(network.id, (id) => this.#namedMembers(id));
    this.#tellNames(network);
    return { link: '', ipAddress: task.ip, prefixLength, gateway: '', macAddress: macOf(task.ip) };
  }

  leave(network: NetworkRecord, { id, ipAddress }: MadeEndpoint, stays: boolean): void {
    const name = this.#sandboxes.leave(id);
    const task = this.#taskHere(network.id, (one) => one.name === name);
    if (task !== undefined) this.#withdrawn.add(task.id);
    this.attachments.release(network.id, ipAddress);
    if (stays) this.#fabrics.get(network.id)?.removePort(ipAddress);
    this.#settleSoon(network.id);
  }

  /** The resolver's commands for the networks that containers here are in. */
  nameCommands(): Command[] {
    const { store } = this.#networks;
    const named = store.networks().filter(({ id, overlay }) => {
      return overlay !== undefined && !overlay.ingress && store.endpointsIn(id).length > 0;
    });
    return this.#names.all(named, (id) => this.#current(id));
  }

  /** Whether the sandbox of published ports lives. */
  get hasIngress(): boolean {
    return this.#ingress.isThere;
  }

  /** Removes everything from the machine: no container is left. */
  removeAll(): void {
    this.#ingress.remove();
    this.#fabrics.removeOthers(() => false, INGRESS_SANDBOX);
  }

  [Symbol.dispose](): void {
    this.#fabrics[Symbol.dispose]();
    this.#sandboxes[Symbol.dispose]();
    this.#ingress[Symbol.dispose]();
  }

  /** Changes that come together are settled together. */
  #settleSoon(id: string): void {
    if (this.#unsettled.has(id)) return;
    this.#unsettled.add(id);
    this.#networks.settings.background.after(SETTLE_MS, 'settle an overlay', { network: id }, () => {
      if (this.#unsettled.delete(id)) this.#settle(id);
    });
  }

  /** Brings all that was heard in force. */
  settleAll(): void {
    for (const id of this.#unsettled) this.#settle(id);
    this.#unsettled.clear();
  }

  /** At once, and again later where that fails. */
  #settle(id: string): void {
    this.#networks.settings.background.untilDone('settle an overlay', { network: id }, () => this.#settleNow(id));
  }

  /** Brings the kernel, the names and the published ports in line with what is known. */
  #settleNow(id: string): void {
    const network = this.#networks.store.network(id);
    if (network?.overlay === undefined || this.#endIfUnused(id)) return;
    const members = this.#members.in(id);
    const { local, ingress } = network.overlay;
    if (ingress) this.#ingress.settle(network, this.#current(id));
    if (this.#fabrics.get(id) !== undefined || this.#networks.store.endpointsIn(id).length > 0) {
      this.#fabrics.lead(network, remoteIn(members, local));
    }
    this.#sandboxes.balance(id, (other) => this.#namedMembers(other));
    this.#tellNames(network);
  }

  /** Whether the network has ended here. */
  #endIfUnused(id: string): boolean {
    const { store, settings } = this.#networks;
    if (!this.#leaving.has(id)) return false;
    const network = store.network(id);
    if (network?.overlay?.ingress === true) this.#ingress.remove();
    if (store.endpointsIn(id).length > 0) return false;
    this.#leaving.delete(id);
    this.#names.forget(id);
    this.#fabrics.remove(id);
    settings.db.transaction(() => {
      for (const member of this.#members.in(id)) this.#members.delete(id, member.id);
      if (network !== undefined) store.deleteNetwork(network);
    });
    return true;
  }

  #tellNames(network: NetworkRecord): void {
    if (network.overlay?.ingress === false) this.#names.tell(network, this.#current(network.id));
  }

  #taskHere(network: string, isIt: (task: TaskMember) => boolean): TaskMember | undefined {
    const local = this.#local(network);
    return tasksIn(this.#members.in(network)).find((task) => task.host === local && isIt(task));
  }

  #local(network: string): string {
    return this.#networks.store.network(network)?.overlay?.local ?? '';
  }

  /** The members with what this node knows better. */
  #current(network: string): Member[] {
    return this.#members.in(network).map((member) => {
      return member.kind === 'task' && this.#withdrawn.has(member.id) ? { ...member, serves: false } : member;
    });
  }

  /** Members with names; none of the network `ingress`, where containers know nobody. */
  #namedMembers(network: string): Member[] {
    return this.#networks.store.network(network)?.overlay?.ingress === true ? [] : this.#current(network);
  }
}

/** The refusal of containers that belong to no task, in dockerd's words. */
export function notAttachable(name: string, kind: 'failed' | 'forbidden'): EngineError {
  const reason = `rpc error: code = PermissionDenied desc = network ${name} not manually attachable`;
  return new EngineError(kind, `Could not attach to network ${name}: ${reason}`);
}

function notAnnounced(network: string): EngineError {
  const seconds = ANNOUNCEMENT_TIMEOUT_MS / 1000;
  return new EngineError('failed', `network ${network} was not announced to this node within ${seconds} s`);
}
