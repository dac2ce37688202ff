import { EngineError } from '../../lib/errors.ts';
import { endpointOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored, TaskRecord } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';
import { NetworkAddresses } from './network-addresses.ts';
import { endpointPorts, PublishedPorts } from './ports.ts';

/**
 * Gives services their published ports and virtual addresses, and new tasks their addresses. A task that has all of them
 * is pending; one without a free address says so, and gets the next that is free.
 */
export function allocate(draft: Draft, now: Temporal.Instant): void {
  const addresses = new NetworkAddresses(draft);
  freeAddresses(draft);
  const ingress = draft.all('network').find((network) => network.ingress)?.id;
  const ports = new PublishedPorts(draft);
  for (const service of [...draft.all('service')]) allocateEndpoint(draft, service, { addresses, ports, ingress });
  for (const task of [...draft.all('task').filter(({ status }) => status.state === 'new')]) {
    const networks = networksOf(draft, task, ingress);
    try {
      const taken = networks.map((network) => ({ network, address: addresses.take(network) }));
      put(draft, task, now, { addresses: taken, state: 'pending', message: 'pending task scheduling' });
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (task.status.error !== error.message) {
        put(draft, task, now, { state: 'new', message: 'pending allocation', error: error.message });
      }
    }
  }
}

type Parts = Readonly<{ addresses: NetworkAddresses; ports: PublishedPorts; ingress: string | undefined }>;

function allocateEndpoint(draft: Draft, service: Stored<'service'>, { addresses, ports, ingress }: Parts): void {
  const { spec, endpoint } = service;
  const chosen = endpointPorts(service, ports);
  const isPublished = chosen.length > 0 && ingress !== undefined;
  const networks =
    endpointOf(spec).mode === 'vip'
      ? [...(isPublished ? [ingress] : []), ...spec.networks.map(({ target }) => target)]
      : [];
  const virtualIps = networks.map(
    (network) =>
      endpoint.virtualIps.find((had) => had.network === network) ?? { network, address: addresses.take(network) },
  );
  const next = { ports: chosen, virtualIps };
  if (JSON.stringify(next) !== JSON.stringify(endpoint)) draft.put('service', { ...service, endpoint: next });
}

/** The networks of the task's template; where its service publishes ports, the ingress network first. */
function networksOf(draft: Draft, task: TaskRecord, ingress: string | undefined): string[] {
  const template = draft.get('template', `${task.service}/${task.template}`);
  const own = template?.networks.map(({ target }) => target) ?? [];
  const { ports, mode } = endpointOf(template ?? {});
  const isPublished = ports.length > 0 && mode === 'vip';
  return isPublished && ingress !== undefined ? [ingress, ...own] : own;
}

/** A task that is over gives its addresses back. */
function freeAddresses(draft: Draft): void {
  for (const task of [...draft.all('task')]) {
    if (task.addresses.length > 0 && hasEnded(task.status.state)) draft.put('task', { ...task, addresses: [] });
  }
}

type Change = Pick<TaskRecord['status'], 'state' | 'message' | 'error'> & { addresses?: TaskRecord['addresses'] };

function put(draft: Draft, task: TaskRecord, now: Temporal.Instant, { addresses, ...status }: Change): void {
  const timestamp = now.toString();
  const next = { ...task, status: { ...status, timestamp }, updatedAt: timestamp };
  draft.put('task', addresses === undefined ? next : { ...next, addresses });
}
