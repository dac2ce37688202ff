import { closeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { withNetns } from '../../../host/namespaces.ts';
import { addAddress, listAddresses } from '../../../host/network/addresses.ts';
import { changeLink } from '../../../host/network/links.ts';
import { Netlink } from '../../../host/network/netlink.ts';
import { append } from '../../../lib/append.ts';
import { EngineError } from '../../../lib/errors.ts';
import { newId } from '../../../lib/ids.ts';
import { macOf } from '../../addresses/address-leases.ts';
import type { NewEndpoint } from '../../drivers/driver.ts';
import type { Endpoint } from '../../endpoints/endpoint.ts';
import { ANY, type PublishedPort } from '../../endpoints/ports.ts';
import type { Networks } from '../../networks.ts';
import type { NetworkRecord } from '../../store.ts';
import type { Fabric } from '../fabric.ts';
import { ensureGatewayNetwork } from '../gateway-network.ts';
import { remoteIn, servicesIn, type Member } from '../members/members.ts';
import { nameNetns, openNamedNetns, removeNamedNetns } from '../named-netns.ts';
import { subnetOf } from '../record.ts';
import { Balancing, publishedPorts } from './balancing.ts';

/** The sandbox stands where containers do, under dockerd's name. */
export const INGRESS_SANDBOX = 'ingress-sbox';
const LINK = 'eth1';

type Parts = Readonly<{
  /** Folder of the mounted namespaces. */
  folder: string;
  /** The network's part on this node, with the addresses elsewhere by their nodes. */
  lead: (network: NetworkRecord, remote: ReadonlyMap<string, string>) => Fabric;
}>;

/**
 * The published ports of services on this node: a sandbox without a container, where the machine's ports lead, and from
 * which rules lead on to tasks on any node. Tasks see the sandbox's address.
 *
 * It exists while a service publishes ports, and outlives the daemon.
 */
export class Ingress implements Disposable {
  readonly #networks: Networks;
  readonly #parts: Parts;
  #balancing = new Balancing('ingress');
  /** Ports that another program has, so that each is logged once. */
  readonly #taken = new Set<string>();

  constructor(networks: Networks, parts: Parts) {
    this.#networks = networks;
    this.#parts = parts;
  }

  /** Whether the sandbox lives. */
  get isThere(): boolean {
    const netns = openNamedNetns(this.#path);
    if (netns === undefined) return false;
    closeSync(netns);
    return true;
  }

  settle(network: NetworkRecord, members: readonly Member[]): void {
    const local = network.overlay!.local;
    const own = members.find((member) => member.kind === 'node' && member.host === local);
    const wanted = servicesIn(members).flatMap(({ ports }) => ports);
    if (own?.kind !== 'node' || wanted.length === 0) return this.remove();
    const netns = this.#open();
    try {
      this.#join(network, members, { netns, ip: own.ip });
      this.#balancing.write(netns, publishedPorts(members, own.id));
    } finally {
      closeSync(netns);
    }
    this.#publish(wanted.map(({ protocol, published }) => ({ protocol, port: published })));
  }

  /** Gives up the sandbox and its ports. A missing one is not an error. */
  remove(): void {
    const { store, settings } = this.#networks;
    const endpoints = store.endpointsOf(INGRESS_SANDBOX);
    settings.db.transaction(() => {
      for (const endpoint of endpoints) {
        store.deleteEndpoint(endpoint);
        const network = store.network(endpoint.networkId);
        if (network !== undefined && network.overlay === undefined) {
          this.#networks.giveBack(network, endpoint, true);
        }
      }
    });
    removeNamedNetns(this.#path);
    this.#balancing = new Balancing('ingress');
    this.#taken.clear();
  }

  [Symbol.dispose](): void {
    this.#balancing = new Balancing('ingress');
  }

  get #path(): string {
    return join(this.#parts.folder, INGRESS_SANDBOX);
  }

  get #gate(): Endpoint | undefined {
    const { store } = this.#networks;
    return store.endpointsOf(INGRESS_SANDBOX).find(({ isWayOut }) => isWayOut === true);
  }

  /** The namespace, with a link that leads out. What a killed daemon made in part is made anew. */
  #open(): number {
    if (this.#gate !== undefined) {
      const netns = openNamedNetns(this.#path);
      if (netns !== undefined) return netns;
    }
    this.remove();
    const network = ensureGatewayNetwork(this.#networks);
    const wanted: NewEndpoint = {
      id: newId(),
      ports: [],
      exposed: [],
      containerName: INGRESS_SANDBOX,
      startsContainer: false,
    };
    const joined = this.#networks.driverOf(network).join(network, wanted);
    if (joined instanceof Promise || joined.netns === undefined) throw new Error('a bridge joins at once');
    const { netns, place } = joined;
    using undo = new DisposableStack();
    undo.defer(() => closeSync(netns));
    undo.defer(() => this.#networks.bridges().leave(network.id, place, undefined));
    withNetns(netns, () => writeFileSync('/proc/sys/net/ipv4/ip_forward', '1'));
    nameNetns(netns, this.#path);
    this.#save(network, { id: wanted.id, ...place, ports: [], isWayOut: true });
    undo.move();
    return netns;
  }

  #save(network: NetworkRecord, rest: Omit<Endpoint, 'sandboxId' | 'containerId' | 'networkId' | 'networkName'>): void {
    const names = { sandboxId: INGRESS_SANDBOX, containerId: INGRESS_SANDBOX };
    this.#networks.store.insertEndpoint({ ...names, networkId: network.id, networkName: network.name, ...rest });
  }

  /** Its link in the network, with the address that the leader has given this node. */
  #join(network: NetworkRecord, members: readonly Member[], { netns, ip }: { netns: number; ip: string }): void {
    const { store } = this.#networks;
    const before = store.endpointsOf(INGRESS_SANDBOX).find(({ networkId }) => networkId === network.id);
    const fabric = this.#parts.lead(network, remoteIn(members, network.overlay!.local));
    using inside = withNetns(netns, () => new Netlink());
    if (before?.ipAddress === ip && listAddresses(inside).some((address) => address.ip === ip)) return;
    if (before !== undefined) store.deleteEndpoint(before);
    const link = fabric.addPort(netns, LINK, ip);
    const { prefixLength } = subnetOf(network, ip);
    inside.apply(changeLink(link, { up: true }), addAddress({ link, ip, prefixLength }));
    const place = { link: '', ipAddress: ip, prefixLength, gateway: '', macAddress: macOf(ip) };
    this.#save(network, { id: newId(), ...place, ports: [] });
  }

  /** Leads the machine's ports to the sandbox, where they have the same numbers. */
  #publish(wanted: readonly Readonly<{ protocol: PublishedPort['protocol']; port: number }>[]): void {
    const { store, settings } = this.#networks;
    const gate = this.#gate!;
    const bridges = this.#networks.bridges();
    const isWanted = ({ protocol, hostPort }: PublishedPort): boolean =>
      wanted.some((one) => one.protocol === protocol && one.port === hostPort);
    const gone = gate.ports.filter((port) => !isWanted(port));
    const kept = gate.ports.filter(isWanted);
    bridges.unpublish(gate, gone);
    const made: PublishedPort[] = [];
    for (const { protocol, port } of wanted) {
      if (kept.some((one) => one.protocol === protocol && one.hostPort === port)) continue;
      const range = { first: port, last: port };
      try {
        append(made, bridges.publish(gate.networkId, gate, [{ containerPort: port, protocol, hostIp: ANY, range }]));
        this.#taken.delete(`${port}/${protocol}`);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (!this.#taken.has(`${port}/${protocol}`)) {
          settings.log.error({ err: error, port, protocol }, 'a published port of a service is taken on this node');
        }
        this.#taken.add(`${port}/${protocol}`);
      }
    }
    if (gone.length + made.length > 0) store.saveEndpoint({ ...gate, ports: [...kept, ...made] });
  }
}
