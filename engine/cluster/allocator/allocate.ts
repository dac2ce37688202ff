import { EngineError } from '../../lib/errors.ts';
import { endpointOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { ServiceRecord, Stored, TaskRecord } from '../state/records.ts';
import { hasEnded, isWanted } from '../state/task-states.ts';
import type { View } from '../state/view.ts';
import { NetworkAddresses } from './network-addresses.ts';
import { endpointPorts, PublishedPorts, publishes } from './ports.ts';

/**
 * Gives services their published ports and virtual addresses, and new tasks their addresses. A task that has all of them
 * is pending; one without a free address says so, and gets the next that is free.
 *
 * Taken addresses and waiting tasks are kept from turn to turn; all of it follows from the records.
 */
export class Allocator {
  readonly #committed: View;
  readonly #addresses: NetworkAddresses;
  /** The new tasks. */
  readonly #tasks = new Set<string>();
  /** Tasks that are over and still have addresses. */
  readonly #ended = new Set<string>();
  /** Services whose endpoint is not what they want, and why. */
  readonly #services = new Map<string, string>();
  /** Containers of no service that have no address yet. */
  readonly #containers = new Set<string>();
  /** Nodes without an address in the ingress network: they get one once a service publishes ports. */
  readonly #nodes = new Set<string>();
  #isPublishing = false;

  /** `committed`: the records under the drafts. */
  constructor(committed: View) {
    this.#committed = committed;
    this.#addresses = new NetworkAddresses(committed);
    for (const service of committed.all('service')) this.#noteService(service);
    for (const { id } of committed.all('node')) this.#nodes.add(id);
    for (const task of committed.all('task')) this.#noteTask(task);
    for (const { id } of committed.all('attachment')) this.#containers.add(id);
  }

  run(draft: Draft, now: Temporal.Instant): void {
    this.#takeChanges(draft);
    this.#free(draft);
    const ports = new LazyPorts(draft);
    for (const id of [...this.#services.keys()]) this.#serve(draft, id, ports);
    for (const id of [...this.#tasks]) this.#address(draft, id, now);
    for (const id of this.#containers) this.#addressContainer(draft, id, now);
    this.#containers.clear();
    this.#addressNodes(draft);
  }

  #takeChanges(draft: Draft): void {
    for (const { kind, id, record } of draft.changes) {
      if (kind === 'task') {
        const before = this.#committed.get('task', id);
        if (record === undefined) for (const one of before?.addresses ?? []) this.#addresses.release(one);
        else this.#noteTask(record);
      } else if (kind === 'service') {
        const before = this.#committed.get('service', id);
        if (record !== undefined) this.#noteService(record);
        else for (const one of before?.endpoint.virtualIps ?? []) this.#addresses.release(one);
      } else if (kind === 'node') {
        const address = this.#committed.get('node', id)?.ingress;
        const network = ingressOf(draft);
        if (record !== undefined) this.#nodes.add(id);
        else if (address !== undefined && network !== undefined) this.#addresses.release({ network, address });
      } else if (kind === 'attachment') {
        const before = this.#committed.get('attachment', id);
        if (record !== undefined) this.#containers.add(id);
        else if (before !== undefined && before.address !== '') this.#addresses.release(before);
      } else if (kind === 'network') {
        this.#addresses.forget(id);
        for (const service of draft.all('service')) this.#services.set(service.id, '');
      }
    }
  }

  #noteService(service: ServiceRecord): void {
    this.#services.set(service.id, '');
    this.#isPublishing ||= publishes(service.spec);
  }

  #noteTask(task: TaskRecord): void {
    if (isNew(task)) this.#tasks.add(task.id);
    else if (task.addresses.length > 0 && hasEnded(task.status.state)) this.#ended.add(task.id);
  }

  /** A task that is over gives its addresses back. */
  #free(draft: Draft): void {
    for (const id of this.#ended) {
      const task = draft.get('task', id);
      for (const one of task?.addresses ?? []) this.#addresses.release(one);
      if (task !== undefined) draft.put('task', { ...task, addresses: [] });
    }
    this.#ended.clear();
  }

  /** Makes the endpoint of a service what it wants, or notes why not. */
  #serve(draft: Draft, id: string, ports: LazyPorts): void {
    const service = draft.get('service', id);
    if (service === undefined) return void this.#services.delete(id);
    try {
      const endpoint = this.#endpoint(draft, service, ports);
      if (JSON.stringify(endpoint) !== JSON.stringify(service.endpoint)) draft.put('service', { ...service, endpoint });
      this.#services.delete(id);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#services.set(id, error.message);
    }
  }

  #endpoint(draft: Draft, service: Stored<'service'>, ports: LazyPorts): ServiceRecord['endpoint'] {
    const { spec, endpoint } = service;
    const chosen = endpointOf(spec).ports.length === 0 ? [] : endpointPorts(service, ports.value);
    const ingress = publishes(spec) ? ingressOf(draft) : undefined;
    const own = endpointOf(spec).mode === 'vip' ? spec.networks.map(({ target }) => target) : [];
    const wanted = ingress === undefined ? own : [ingress, ...own];
    const had = new Map(endpoint.virtualIps.map((one) => [one.network, one]));
    const taken = this.#addresses.takeAll(
      draft,
      wanted.filter((network) => !had.has(network)),
    );
    for (const one of had.values()) if (!wanted.includes(one.network)) this.#addresses.release(one);
    const all = new Map([...had, ...taken.map((one) => [one.network, one] as const)]);
    return { ports: chosen, virtualIps: wanted.map((network) => all.get(network)!) };
  }

  /** One that gets none says why, and its node gives it up. */
  #addressContainer(draft: Draft, id: string, now: Temporal.Instant): void {
    const record = draft.get('attachment', id);
    if (record === undefined || record.address !== '' || record.error !== undefined) return;
    const updatedAt = now.toString();
    try {
      const { address } = this.#addresses.take(draft, record.network, record.ip);
      draft.put('attachment', { ...record, address, updatedAt });
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      draft.put('attachment', { ...record, error: error.message, updatedAt });
    }
  }

  #addressNodes(draft: Draft): void {
    const ingress = this.#isPublishing ? ingressOf(draft) : undefined;
    if (ingress === undefined) return;
    for (const id of this.#nodes) {
      const node = draft.get('node', id);
      try {
        if (node !== undefined && node.ingress === undefined) {
          draft.put('node', { ...node, ingress: this.#addresses.take(draft, ingress).address });
        }
        this.#nodes.delete(id);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        return; // the network is full: the next turn tries again
      }
    }
  }

  #address(draft: Draft, id: string, now: Temporal.Instant): void {
    const task = draft.get('task', id);
    this.#tasks.delete(id);
    if (task === undefined || !isNew(task)) return;
    try {
      const reason = this.#services.get(task.service) ?? '';
      if (reason !== '') throw new EngineError('failed', reason);
      const addresses = this.#addresses.takeAll(draft, networksOf(draft, task));
      put(draft, task, now, { addresses, state: 'pending', message: 'pending task scheduling' });
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#tasks.add(id);
      if (task.status.error === error.message) return;
      put(draft, task, now, { state: 'new', message: 'pending allocation', error: error.message });
    }
  }
}

/** The ports of all services, read where one is needed. */
class LazyPorts {
  readonly #view: View;
  #ports: PublishedPorts | undefined;

  constructor(view: View) {
    this.#view = view;
  }

  get value(): PublishedPorts {
    return (this.#ports ??= new PublishedPorts(this.#view));
  }
}

/** The networks of the task's template; where its service publishes ports, the ingress network first. */
function networksOf(draft: Draft, task: TaskRecord): string[] {
  const template = draft.get('template', `${task.service}/${task.template}`);
  const own = template?.networks.map(({ target }) => target) ?? [];
  const ingress = publishes(template ?? {}) ? ingressOf(draft) : undefined;
  return ingress === undefined ? own : [ingress, ...own];
}

function ingressOf(view: View): string | undefined {
  return view.all('network').find(({ ingress }) => ingress)?.id;
}

function isNew({ status, desired }: TaskRecord): boolean {
  return status.state === 'new' && isWanted(desired);
}

type Given = Pick<TaskRecord['status'], 'state' | 'message' | 'error'> & { addresses?: TaskRecord['addresses'] };

function put(draft: Draft, task: TaskRecord, now: Temporal.Instant, { addresses, ...status }: Given): void {
  const timestamp = now.toString();
  const next = { ...task, status: { ...status, timestamp }, updatedAt: timestamp };
  draft.put('task', addresses === undefined ? next : { ...next, addresses });
}
