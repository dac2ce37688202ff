import { parseIp } from '../../lib/notations/ip-address.ts';
import type { ClusterNetwork, Member } from '../../networks/overlay/members/members.ts';
import { endpointOf } from '../state/defaults.ts';
import type { NetworkRecord, NodeRecord, ServiceRecord, TaskRecord } from '../state/records.ts';
import { hasEnded, isToRun, shownPlace } from '../state/task-states.ts';
import type { Change, View } from '../state/view.ts';

/** Changes in a network: new or changed members, and the ids of removed ones. */
type Changed = { members: Member[]; gone: string[] };

/** Records that may be members of networks. */
type Joining = 'service' | 'task' | 'node' | 'attachment';

type Part = {
  members: Map<string, Member>;
  /** How many tasks each node has in it. */
  nodes: Map<string, number>;
};

/**
 * Members of each network, kept up with the committed records; each change costs what it touches.
 *
 * A node has a part in a network while a task or container of it is there, and in the network `ingress` while any service
 * publishes ports.
 */
export class Topology {
  readonly #view: View;
  readonly #parts = new Map<string, Part>();
  /** The networks in which a record is a member, by its id. */
  readonly #memberships = new Map<string, ReadonlyMap<string, Member>>();
  /** The node of each task, and of each container, that is a member. */
  readonly #placed = new Map<string, string>();

  constructor(view: View) {
    this.#view = view;
    for (const kind of ['service', 'node', 'task', 'attachment'] as const) {
      for (const { id } of view.all(kind)) this.#renew(kind, id, new Map());
    }
  }

  /** Takes changes in. Returns what they are in each network. */
  apply(changes: readonly Change[]): Map<string, Changed> {
    const changed = new Map<string, Changed>();
    for (const { kind, id } of changes) {
      if (kind === 'service' || kind === 'task' || kind === 'node' || kind === 'attachment')
        this.#renew(kind, id, changed);
      if (kind === 'node') {
        for (const task of this.#view.tasksOn(id)) this.#renew('task', task.id, changed);
        for (const one of this.#view.all('attachment')) if (one.node === id) this.#renew('attachment', one.id, changed);
      }
      if (kind === 'network') this.#renewNetwork(id, changed);
    }
    return changed;
  }

  /** The networks in which a node has a part. */
  networksOf(node: string): string[] {
    return [...this.#view.all('network')].filter(({ id }) => this.nodesIn(id).has(node)).map(({ id }) => id);
  }

  nodesIn(network: string): ReadonlySet<string> {
    const record = this.#view.get('network', network);
    if (record === undefined) return new Set();
    const part = this.#parts.get(network);
    if (!record.ingress) return new Set(part?.nodes.keys());
    const members = [...(part?.members.values() ?? [])];
    const isPublished = members.some((member) => member.kind === 'service' && member.ports.length > 0);
    return new Set(isPublished ? members.filter(({ kind }) => kind === 'node').map(({ id }) => id) : []);
  }

  membersIn(network: string): Member[] {
    return [...(this.#parts.get(network)?.members.values() ?? [])];
  }

  #renewNetwork(id: string, changed: Map<string, Changed>): void {
    if (this.#view.get('network', id) === undefined) this.#parts.delete(id);
    else changed.set(id, changed.get(id) ?? { members: [], gone: [] });
  }

  #renew(kind: Joining, id: string, changed: Map<string, Changed>): void {
    const now = this.#membershipsOf(kind, id);
    const before = this.#memberships.get(id) ?? new Map<string, Member>();
    const isPlaced = kind === 'task' || kind === 'attachment';
    const node = isPlaced ? (this.#view.get(kind, id)?.node ?? '') : '';
    for (const [network, member] of now) {
      const old = before.get(network);
      if (old !== undefined && JSON.stringify(old) === JSON.stringify(member)) continue;
      const part = this.#part(network);
      part.members.set(id, member);
      if (old === undefined && isPlaced) part.nodes.set(node, (part.nodes.get(node) ?? 0) + 1);
      changesOf(changed, network).members.push(member);
    }
    for (const network of before.keys()) {
      if (now.has(network)) continue;
      const part = this.#part(network);
      part.members.delete(id);
      if (isPlaced) this.#leave(part, this.#placed.get(id) ?? '');
      changesOf(changed, network).gone.push(id);
    }
    if (now.size === 0) this.#memberships.delete(id);
    else this.#memberships.set(id, now);
    if (!isPlaced) return;
    if (now.size === 0) this.#placed.delete(id);
    else this.#placed.set(id, node);
  }

  #leave({ nodes }: Part, node: string): void {
    const left = (nodes.get(node) ?? 1) - 1;
    if (left === 0) nodes.delete(node);
    else nodes.set(node, left);
  }

  #part(network: string): Part {
    let part = this.#parts.get(network);
    if (part === undefined) this.#parts.set(network, (part = { members: new Map(), nodes: new Map() }));
    return part;
  }

  #membershipsOf(kind: Joining, id: string): Map<string, Member> {
    switch (kind) {
      case 'service':
        return this.#ofService(id);
      case 'task':
        return this.#ofTask(id);
      case 'node':
        return this.#ofNode(id);
      case 'attachment':
        return this.#ofContainer(id);
    }
  }

  #ofService(id: string): Map<string, Member> {
    const service = this.#view.get('service', id);
    const members = new Map<string, Member>();
    if (service === undefined) return members;
    const { name } = service.spec;
    const vipIn = (network: string): { vip?: string } => {
      const address = service.endpoint.virtualIps.find((one) => one.network === network)?.address;
      return address === undefined ? {} : { vip: address.split('/')[0]! };
    };
    for (const { target, aliases } of networksOf(service, this.#view)) {
      members.set(target, { kind: 'service', id, name, aliases: [...aliases], ...vipIn(target), ports: [] });
    }
    const ingress = this.#view.all('network').find((network) => network.ingress)?.id;
    const published = service.endpoint.ports.filter(({ mode }) => mode !== 'host');
    if (ingress !== undefined && published.length > 0 && endpointOf(service.spec).mode === 'vip') {
      const ports = published.map(({ protocol, publishedPort, targetPort }) => {
        return { protocol, published: publishedPort, target: targetPort };
      });
      members.set(ingress, { kind: 'service', id, name, aliases: [], ...vipIn(ingress), ports });
    }
    return members;
  }

  #ofTask(id: string): Map<string, Member> {
    const task = this.#view.get('task', id);
    const members = new Map<string, Member>();
    if (task === undefined || task.node === '' || hasEnded(task.status.state)) return members;
    const host = hostOf(this.#view.get('node', task.node));
    const service = this.#view.get('service', task.service)?.spec.name ?? this.#nameBefore(task);
    if (host === undefined || service === undefined) return members;
    const name = `${service}.${shownPlace(task)}.${task.id}`;
    const serves = task.status.state === 'running' && isToRun(task.desired);
    for (const { network, address } of task.addresses) {
      const ip = address.split('/')[0]!;
      members.set(network, { kind: 'task', id, service: task.service, name, ip, host, serves });
    }
    return members;
  }

  /** A container of no service: nobody is led to a node that is down. */
  #ofContainer(id: string): Map<string, Member> {
    const record = this.#view.get('attachment', id);
    const node = this.#view.get('node', record?.node ?? '');
    const host = hostOf(node);
    if (record === undefined || record.address === '') return new Map();
    if (host === undefined || node?.status.state === 'down') return new Map();
    const { name, aliases, network, address } = record;
    const ip = address.split('/')[0]!;
    return new Map([[network, { kind: 'container', id, name, aliases: [...aliases], ip, host }]]);
  }

  /** Tasks outlive the record of their service: until they have ended they keep the name. */
  #nameBefore({ id }: TaskRecord): string | undefined {
    const [member] = this.#memberships.get(id)?.values() ?? [];
    return member?.kind === 'task' ? member.name.split('.').slice(0, -2).join('.') : undefined;
  }

  #ofNode(id: string): Map<string, Member> {
    const node = this.#view.get('node', id);
    const ingress = this.#view.all('network').find((network) => network.ingress)?.id;
    const host = hostOf(node);
    if (node?.ingress === undefined || ingress === undefined || host === undefined) return new Map();
    return new Map([[ingress, { kind: 'node', id, ip: node.ingress.split('/')[0]!, host }]]);
  }
}

/** The address of a node's tunnels for the others; undefined before its first session, and for a record of a bad one. */
export function hostOf(node: NodeRecord | undefined): string | undefined {
  const address = node?.dataPath ?? node?.status.address ?? '';
  return parseIp(address) === undefined ? undefined : address;
}

function changesOf(changed: Map<string, Changed>, network: string): Changed {
  let one = changed.get(network);
  if (one === undefined) changed.set(network, (one = { members: [], gone: [] }));
  return one;
}

/** Its own networks, also those that its tasks of an older template are in. */
function networksOf({ spec, template, id }: ServiceRecord, view: View): ServiceRecord['spec']['networks'] {
  const current = view.get('template', `${id}/${template}`)?.networks ?? [];
  const more = current.filter(({ target }) => !spec.networks.some((one) => one.target === target));
  return [...spec.networks, ...more];
}

/** A network as nodes get to know it. */
export function networkForNodes(network: NetworkRecord): ClusterNetwork {
  const { id, name, createdAt, labels, options, internal, ingress, vni, subnets, attachable } = network;
  return {
    ...{ id, name, createdAt, internal, ingress, vni },
    labels: { ...labels },
    options: { ...options },
    subnets: subnets.map(({ auxiliary, ...subnet }) => ({
      ...subnet,
      ...(auxiliary !== undefined && { auxiliary: { ...auxiliary } }),
    })),
    ...(attachable === true && { attachable }),
  };
}
