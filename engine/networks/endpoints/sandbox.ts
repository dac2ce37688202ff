import { closeSync } from 'node:fs';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId } from '../../lib/ids.ts';
import { measure } from '../../lib/measures.ts';
import { addDnsRulesIn } from '../dns/rules.ts';
import type { Eventually, Joined, NetworkDriver, NewEndpoint, WantedPlace } from '../drivers/driver.ts';
import type { Networks } from '../networks.ts';
import { needsGatewayNetwork, ensureGatewayNetwork } from '../overlay/gateway-network.ts';
import { networkOfMode, type NetworkMode } from '../settings/mode.ts';
import type { NetworkRecord } from '../store.ts';
import { attachAll } from './attach.ts';
import { checkedMac, checkPlace } from './checks.ts';
import type { Endpoint, Place } from './endpoint.ts';
import { gatewayEndpoint, settleRoutes } from './gateway.ts';
import { loopbackNetns } from './namespace.ts';
import { wantedPorts, type PortBindings, type PublishedPort } from './ports.ts';

export type NetworkNeeds = Pick<Engine, 'networks' | 'events'>;

/** An endpoint that a container wants in the network `ref`, by id or name; `aliases`: its further names there. */
export type WantedEndpoint = WantedPlace & Readonly<{ ref: string; aliases?: readonly string[]; gwPriority?: number }>;

/** A container's request for published ports. */
export type PortRequest = Readonly<{
  containerId: string;
  /** Without the leading slash; error messages name it. */
  containerName: string;
  /** Keys such as `80/tcp`; a missing or empty HostPort takes a free one of the kernel's ephemeral range. */
  portBindings: PortBindings;
  /** Publishes every port of `exposed` that has no binding. */
  publishAll: boolean;
  /** Keys such as `80/tcp`. */
  exposed: readonly string[];
}>;

/** The network settings of a starting container. */
export type SandboxRequest = PortRequest &
  Readonly<{
    mode: NetworkMode;
    /** Config.NetworkDisabled: a namespace with only loopback, in no network. */
    isDisabled: boolean;
    /** Hardware address of the first endpoint. Default: made from the address. */
    mac?: string;
    /** Address of the first endpoint, without `endpoints`. Default: the lowest free address. */
    ip?: string;
    /** Default: one in the network of the mode. The first becomes `eth0`. */
    endpoints?: readonly WantedEndpoint[];
    /** Process whose user namespace is to own the network namespace. Default: one of its own, where users are mapped. */
    usersOf?: number | undefined;
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
  const { mode, containerId } = request;
  if (mode.kind === 'container') return { netns: undefined, endpoints: [] };
  const measured = measure('network', 'allocate');
  using attached = await attachAll(engine.networks, endpointsIn(request), request.containerName);
  const entries = withGatewayNetwork(engine.networks, entriesOf(engine.networks, request));
  using uses = new DisposableStack();
  for (const { network } of entries) uses.use(engine.networks.uses.join(network));
  for (const { network, driver } of entries) await driver.prepare?.(network);
  closeSandbox(engine, containerId);
  if (entries.length === 0) return { netns: loopbackNetns(request.usersOf), endpoints: [] };
  const sandbox = await joinAll(engine, entries, request);
  attached.move();
  measured();
  return sandbox;
}

/** A network that a container is about to join. */
export type Entry = Readonly<{
  network: NetworkRecord;
  driver: NetworkDriver;
  wanted: WantedPlace;
  gwPriority?: number;
  /** It only leads out. */
  isWayOut?: boolean;
}>;

/** Finds the network of an endpoint, and checks whether it has the requested addresses. */
export function entryOf(
  networks: Networks,
  { ref, ip, ip6, mac, linkLocal, gwPriority, interfaceName, sysctls }: WantedEndpoint,
): Entry | undefined {
  const network = networks.forEndpoint(ref);
  if (network === undefined) return undefined;
  checkPlace(network, 4, ip);
  checkPlace(network, 6, ip6);
  const wanted = {
    ip: ip || undefined,
    ip6: ip6 || undefined,
    linkLocal,
    interfaceName,
    sysctls,
    mac: mac === undefined || mac === '' ? undefined : checkedMac(mac),
  };
  return { network, driver: networks.driverOf(network), wanted, gwPriority };
}

/** Priority of an endpoint, as it is stored. */
export function priorityOf({ gwPriority = 0 }: Entry): { gwPriority?: number } {
  return gwPriority === 0 ? {} : { gwPriority };
}

function entriesOf(networks: Networks, request: SandboxRequest): Entry[] {
  const { mac } = request;
  return endpointsIn(request).flatMap((one, position) => {
    const entry = entryOf(networks, position === 0 ? { ...one, mac: one.mac || mac } : one);
    return entry === undefined ? [] : [entry];
  });
}

function endpointsIn({ mode, isDisabled, endpoints, ip }: SandboxRequest): readonly WantedEndpoint[] {
  if (isDisabled && mode.kind !== 'host') return [];
  const ref = networkOfMode(mode);
  return endpoints ?? (ref === undefined ? [] : [{ ref, ip }]);
}

/** Containers of overlays get out by a network that comes first. */
function withGatewayNetwork(networks: Networks, entries: readonly Entry[]): readonly Entry[] {
  if (!entries.some(({ network }) => needsGatewayNetwork(network))) return entries;
  const network = ensureGatewayNetwork(networks);
  return [{ network, driver: networks.driverOf(network), wanted: {}, isWayOut: true }, ...entries];
}

/** Without a plugin there is no wait in it, so that two starts cannot interleave. */
async function joinAll(engine: NetworkNeeds, entries: readonly Entry[], request: SandboxRequest): Promise<Sandbox> {
  const { networks } = engine;
  const { containerId } = request;
  const names = { sandboxId: newId(), containerId };
  using making = new DisposableStack();
  await using undo = new AsyncDisposableStack();
  const shared = netnsOfUsers(entries, request);
  if (shared !== undefined) undo.defer(() => closeSync(shared));
  let netns = shared;
  const endpoints: Endpoint[] = [];
  for (const [position, entry] of entries.entries()) {
    const id = newId();
    making.use(networks.cleanups.hold(id));
    undo.defer(async () => await networks.cleanups.flushSoon(id));
    const joining = join(
      newEndpoint(entry, id, { ...request, startsContainer: true }),
      position === 0 && shared === undefined ? 'first' : netns,
    );
    const joined = joining instanceof Promise ? await joining : joining;
    undo.defer(async () => await entry.driver.leave(entry.network, { id, ...joined.place }));
    if (position === 0 && joined.netns !== undefined) undo.defer(() => closeSync(joined.netns!));
    netns = joined.netns ?? netns;
    const { id: networkId, name: networkName } = entry.network;
    const isWayOut = entry.isWayOut === true && { isWayOut: true };
    const place = { ...joined.place, ports: [], ...priorityOf(entry), ...isWayOut };
    endpoints.push({ ...names, id, networkId, networkName, ...place });
  }
  const gateway = gatewayEndpoint(networks, endpoints);
  const isJoined = shared !== undefined || endpoints.length > 1;
  if (netns !== undefined && isJoined) settleRoutes(networks, netns, endpoints);
  const publishing = gateway === undefined ? [] : publishAt(engine, gateway, request);
  const ports = publishing instanceof Promise ? await publishing : publishing;
  if (gateway !== undefined && ports.length > 0) {
    undo.defer(async () => await unpublishAt(networks, { ...gateway, ports }));
  }
  for (const [position, { network, driver }] of entries.entries()) {
    if (driver.joined !== undefined) await wrapJoinError(driver.joined(network, endpoints[position]!));
  }
  const complete = endpoints.map((endpoint) => (endpoint === gateway ? { ...endpoint, ports } : endpoint));
  // Sandboxes of the default bridge's stock have none.
  const joined = shared === undefined ? entries.slice(1) : entries;
  if (netns !== undefined && joined.some(({ network }) => network.custom !== undefined)) addDnsRulesIn(netns);
  for (const endpoint of complete) {
    networks.store.insertEndpoint(endpoint);
    networks.cleanups.forget(endpoint.id);
  }
  undo.move();
  for (const { network, isWayOut } of entries) if (isWayOut !== true) tell(engine, 'connect', network, containerId);
  return { netns, endpoints: complete };
}

/** A namespace to join for all endpoints, if another container's user namespace is to own it. */
function netnsOfUsers([first]: readonly Entry[], { usersOf }: SandboxRequest): number | undefined {
  return usersOf === undefined || first?.driver.joinInto === undefined ? undefined : loopbackNetns(usersOf);
}

/** In dockerd's words. */
async function wrapJoinError(telling: Promise<void>): Promise<void> {
  try {
    await telling;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `Updating join info failed: ${error.message}`, { cause: error });
  }
}

/** `netns`: that of the endpoints before it; a driver that cannot share one is refused. */
function join(
  { network, driver, wanted }: Entry & { wanted: NewEndpoint },
  netns: number | 'first' | undefined,
): Eventually<Joined> {
  if (netns === 'first') return driver.join(network, wanted);
  if (netns === undefined || driver.joinInto === undefined) throw cannotShare(network);
  const joining = driver.joinInto(network, wanted, { netns });
  return joining instanceof Promise ? joining.then(within) : within(joining);
}

function within(place: Place): Joined {
  return { netns: undefined, place };
}

/** The driver's view of an endpoint. */
export function newEndpoint(
  entry: Entry,
  id: string,
  request: PortRequest & Pick<SandboxRequest, 'usersOf'> & { startsContainer: boolean },
): Entry & { wanted: NewEndpoint } {
  const { containerName, portBindings, publishAll, exposed, startsContainer, usersOf } = request;
  const ports = wantedPorts(portBindings, publishAll, exposed);
  return { ...entry, wanted: { ...entry.wanted, id, containerName, exposed, ports, startsContainer, usersOf } };
}

/** The error for networks that do not go with others, in dockerd's words. */
export function cannotShare({ name }: NetworkRecord): EngineError {
  const text =
    name === 'host'
      ? 'container cannot be disconnected from host network or connected to host network'
      : 'container cannot be connected to multiple networks with one of the networks in private (none) mode';
  return new EngineError('invalid', text);
}

/** Publishes what the container asks for at one of its endpoints. */
export function publishAt(engine: NetworkNeeds, endpoint: Endpoint, request: PortRequest): Eventually<PublishedPort[]> {
  const network = engine.networks.store.network(endpoint.networkId);
  if (network === undefined) return [];
  const driver = engine.networks.driverOf(network);
  return publish(
    engine,
    network,
    request,
    endpoint.id,
    (wanted) => driver.publish?.(network, endpoint, wanted, request.exposed) ?? [],
  );
}

export function unpublishAt(networks: Networks, endpoint: Endpoint): Eventually<void> {
  const network = networks.store.network(endpoint.networkId);
  return network === undefined ? undefined : networks.driverOf(network).unpublish?.(network, endpoint, endpoint.ports);
}

/** Rewords a failure to publish as in dockerd, and emits the disconnect event that dockerd emits then. */
function publish(
  engine: NetworkNeeds,
  network: NetworkRecord,
  { containerId, containerName, portBindings, publishAll, exposed }: PortRequest,
  endpointId: string,
  work: (wanted: ReturnType<typeof wantedPorts>) => Eventually<PublishedPort[]>,
): Eventually<PublishedPort[]> {
  const wanted = wantedPorts(portBindings, publishAll, exposed);
  const failed = (error: unknown): never => {
    tell(engine, 'disconnect', network, containerId);
    if (!(error instanceof EngineError)) throw error;
    const where = `driver failed programming external connectivity on endpoint ${containerName} (${endpointId})`;
    throw new EngineError(error.kind, `${where}: ${error.message}`, { cause: error });
  };
  try {
    const publishing = work(wanted);
    return publishing instanceof Promise ? publishing.catch(failed) : publishing;
  } catch (error) {
    return failed(error);
  }
}

/**
 * Unpublishes, and frees ports and addresses; within a transaction after its commit, so that an endpoint that is rolled
 * back keeps them. Synchronous and cheap. A container without a sandbox is not an error.
 *
 * The kernel removes namespace and links with the last process that holds them.
 */
export function closeSandbox(engine: NetworkNeeds, containerId: string): void {
  const measured = measure('network', 'release');
  const { networks } = engine;
  networks.settings.db.afterCommit(() => networks.dns.forget(containerId));
  const endpoints = networks.endpointsOf(containerId);
  const gateway = gatewayEndpoint(networks, endpoints);
  for (const endpoint of endpoints) {
    networks.store.deleteEndpoint(endpoint);
    const network = networks.store.network(endpoint.networkId);
    if (network === undefined) continue;
    networks.giveBack(network, endpoint, endpoint.id === gateway?.id);
    if (endpoint.isWayOut !== true) tell(engine, 'disconnect', network, containerId);
  }
  if (endpoints.length > 0) measured();
}

/** The event that a container has joined or left a network. */
export function tell(
  engine: NetworkNeeds,
  action: 'connect' | 'disconnect',
  network: NetworkRecord,
  container: string,
): void {
  engine.events.emit('network', action, network.id, { container, name: network.name, type: network.driver });
}
