import { closeSync } from 'node:fs';

import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { NetworkDriver } from './driver.ts';
import type { Endpoint } from './endpoint.ts';
import type { NetworkMode } from './mode.ts';
import { loopbackNetns } from './namespace.ts';
import type { Networks } from './networks.ts';
import { wantedPorts, type PortBindings, type PublishedPort } from './ports.ts';
import type { NetworkRecord } from './store.ts';

export type NetworkNeeds = { networks: Networks; events: Events };

/** What the start of a container requests from the network. */
export type SandboxRequest = Readonly<{
  containerId: string;
  /** Without the leading slash; error messages name it. */
  containerName: string;
  mode: NetworkMode;
  /** Config.NetworkDisabled: a namespace with only loopback, in no network. */
  isDisabled: boolean;
  /** Default: made from the address. */
  mac?: string;
  /** Default: the lowest free address. */
  ip?: string;
  /** Keys such as `80/tcp`; a missing or empty HostPort takes a free one of the kernel's ephemeral range. */
  portBindings: PortBindings;
  /** Publishes every port of `exposed` that has no binding. */
  publishAll: boolean;
  /** Keys such as `80/tcp`. */
  exposed: readonly string[];
}>;

/**
 * A container's network namespace with its endpoints. `netns` is an open file descriptor that the caller closes when
 * the shim has inherited it; undefined if the container has no namespace of its own.
 */
export type Sandbox = Readonly<{ netns: number | undefined; endpoints: readonly Endpoint[] }>;

/**
 * Prepares the namespace of a starting container: leased, addressed, ports published. A failure changes nothing.
 *
 * The caller frees everything with `closeSandbox`, also when the start fails later. Throws `notFound` for an unknown
 * network, `failed` for unavailable ports or addresses.
 */
export async function openSandbox(engine: NetworkNeeds, request: SandboxRequest): Promise<Sandbox> {
  const { mode, isDisabled, containerId } = request;
  if (mode.kind === 'container') return { netns: undefined, endpoints: [] };
  const network = isDisabled && mode.kind !== 'host' ? undefined : engine.networks.forMode(mode);
  if (network === undefined) {
    closeSandbox(engine, containerId);
    return { netns: loopbackNetns(), endpoints: [] };
  }
  const driver = engine.networks.driverOf(network);
  await driver.prepare?.(network);
  closeSandbox(engine, containerId);
  // Synchronous from here to the end, so that two starts cannot interleave.
  return join(engine, network, driver, request);
}

function join(engine: NetworkNeeds, network: NetworkRecord, driver: NetworkDriver, request: SandboxRequest): Sandbox {
  const { containerId } = request;
  const mac = request.mac === undefined || request.mac === '' ? undefined : checkedMac(request.mac);
  const id = newId();
  using undo = new DisposableStack();
  const { netns, place } = driver.join(network, { ip: request.ip, mac });
  undo.defer(() => driver.leave(network, place));
  undo.defer(() => netns !== undefined && closeSync(netns));
  const ports = publish(engine, network, request, id, (wanted) => driver.publish?.(network, place, wanted) ?? []);
  undo.defer(() => driver.unpublish?.(network, place, ports));
  const names = { id, sandboxId: newId(), containerId, networkId: network.id, networkName: network.name };
  const endpoint: Endpoint = { ...names, ...place, ports };
  engine.networks.store.insertEndpoint(endpoint);
  undo.move();
  tell(engine, 'connect', network, containerId);
  return { netns, endpoints: [endpoint] };
}

/** Rewords a failure to publish as in dockerd, and emits the disconnect event that dockerd emits then. */
function publish(
  engine: NetworkNeeds,
  network: NetworkRecord,
  { containerId, containerName, portBindings, publishAll, exposed }: SandboxRequest,
  endpointId: string,
  work: (wanted: ReturnType<typeof wantedPorts>) => PublishedPort[],
): PublishedPort[] {
  const wanted = wantedPorts(portBindings, publishAll, exposed);
  try {
    return work(wanted);
  } catch (error) {
    tell(engine, 'disconnect', network, containerId);
    if (!(error instanceof EngineError)) throw error;
    const where = `driver failed programming external connectivity on endpoint ${containerName} (${endpointId})`;
    throw new EngineError(error.kind, `${where}: ${error.message}`, { cause: error });
  }
}

/**
 * Unpublishes, and frees ports and addresses; within a transaction after its commit, so that an endpoint that is rolled
 * back keeps them. Synchronous and cheap. A container without a sandbox is not an error.
 *
 * The kernel removes namespace and links with the last process that holds them.
 */
export function closeSandbox(engine: NetworkNeeds, containerId: string): void {
  const { networks } = engine;
  for (const endpoint of networks.endpointsOf(containerId)) {
    networks.store.deleteEndpoint(endpoint);
    const network = networks.store.network(endpoint.networkId);
    if (network === undefined) continue;
    networks.giveBack(network, endpoint);
    tell(engine, 'disconnect', network, containerId);
  }
}

/**
 * At the daemon's start: removes the endpoints of dead containers, then sets up the bridge with the rules and ports of
 * the living.
 *
 * Rules are written as a whole, which also replaces half-written rules of a killed daemon.
 */
export async function reconcile(engine: NetworkNeeds, liveContainerIds: Iterable<string>): Promise<void> {
  const live = new Set(liveContainerIds);
  const { store } = engine.networks;
  for (const endpoint of store.endpoints()) {
    if (live.has(endpoint.containerId)) continue;
    store.deleteEndpoint(endpoint);
    const network = store.network(endpoint.networkId);
    if (network !== undefined) tell(engine, 'disconnect', network, endpoint.containerId);
  }
  await engine.networks.start();
}

function checkedMac(mac: string): string {
  const text = mac.toLowerCase().replaceAll('-', ':');
  // The lowest bit of the first byte marks a multicast address, which no link can have.
  if (!/^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/.test(text)) {
    throw new EngineError('invalid', `invalid MAC address: ${mac}`);
  }
  return text;
}

function tell(engine: NetworkNeeds, action: 'connect' | 'disconnect', network: NetworkRecord, container: string): void {
  engine.events.emit('network', action, network.id, { container, name: network.name, type: network.driver });
}
