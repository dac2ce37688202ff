import { EngineError } from '../../lib/errors.ts';
import { newId } from '../../lib/ids.ts';
import { measure } from '../../lib/measures.ts';
import { addDnsRulesIn } from '../dns/rules.ts';
import type { Eventually, Within } from '../drivers/driver.ts';
import type { Networks } from '../networks.ts';
import { publishAlike } from '../settings/gateway-modes.ts';
import type { Endpoint } from './endpoint.ts';
import { gatewayEndpoint, settleRoutes } from './gateway.ts';
import {
  cannotShare,
  entryOf,
  newEndpoint,
  priorityOf,
  publishAt,
  tell,
  unpublishAt,
  type NetworkNeeds,
  type PortRequest,
  type WantedEndpoint,
} from './sandbox.ts';

type Running = Readonly<{ within: Within; request: PortRequest; commit: (endpoint: Endpoint) => void }>;

/**
 * Connects a running container with one more network. `commit` stores the change of the container's record, in one
 * transaction with the endpoint. A failure changes nothing.
 */
export async function joinRunning(
  engine: NetworkNeeds,
  wanted: WantedEndpoint,
  { within, request, commit }: Running,
): Promise<Endpoint> {
  const measured = measure('network', 'connect');
  const { networks } = engine;
  const entry = entryOf(networks, wanted);
  if (entry === undefined) throw new EngineError('notFound', `network ${wanted.ref} not found`);
  const { network, driver } = entry;
  using _use = networks.uses.join(network);
  await driver.prepare?.(network);
  const { containerId } = request;
  const others = networks.endpointsOf(containerId);
  if (others.some(({ networkId }) => networkId === network.id)) {
    const message = `endpoint with name ${request.containerName} already exists in network ${network.name}`;
    throw new EngineError('forbidden', message);
  }
  if (driver.joinInto === undefined) throw cannotShare(network);
  const before = gatewayEndpoint(networks, others);
  if (network.custom !== undefined && !networks.dns.isServed(containerId)) addDnsRulesIn(within.netns);
  const id = newId();
  using _making = networks.cleanups.hold(id);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => await networks.cleanups.flushSoon(id));
  const asked = newEndpoint(entry, id, { ...request, startsContainer: false });
  const joining = driver.joinInto(network, asked.wanted, within);
  const place = joining instanceof Promise ? await joining : joining;
  undo.defer(async () => await driver.leave(network, { id, ...place }, within));
  const names = { id, sandboxId: others[0]?.sandboxId ?? newId(), containerId };
  const of = { networkId: network.id, networkName: network.name, ...priorityOf(entry) };
  const endpoint: Endpoint = { ...names, ...of, ...place, ports: [] };
  if (driver.joined !== undefined) await driver.joined(network, endpoint);
  networks.settings.db.transaction(() => {
    networks.store.insertEndpoint(endpoint);
    networks.cleanups.forget(id);
    commit(endpoint);
    tell(engine, 'connect', network, containerId);
  });
  undo.move();
  await settleGateway(engine, within, request, before);
  measured();
  return endpoint;
}

/** Takes a running container out of a network. */
export async function leaveRunning(
  engine: NetworkNeeds,
  endpoint: Endpoint,
  { within, request, commit }: Running,
): Promise<void> {
  const { networks } = engine;
  const { containerId } = request;
  const network = networks.store.network(endpoint.networkId);
  if (network === undefined) return;
  const driver = networks.driverOf(network);
  const before = gatewayEndpoint(networks, networks.endpointsOf(containerId));
  const rest = networks.endpointsOf(containerId).filter(({ id }) => id !== endpoint.id);
  const moved = moveAway(engine, endpoint, gatewayEndpoint(networks, rest));
  if (moved !== undefined) await moved;
  networks.settings.db.transaction(() => {
    networks.store.deleteEndpoint(endpoint);
    networks.queueCleanup(network, endpoint, endpoint.id === before?.id);
    commit(endpoint);
    tell(engine, 'disconnect', network, containerId);
  });
  const left = driver.leave(network, endpoint, within);
  if (left !== undefined) await left;
  if (networks.cleanups.has(endpoint.id)) await networks.cleanups.flushSoon(endpoint.id);
  await settleGateway(engine, within, request, before);
}

/**
 * The next endpoint takes over the ports, so that no other program can get them. One of another driver, with addresses of
 * other families, or with another way to its ports, publishes them anew.
 */
function moveAway({ networks }: NetworkNeeds, from: Endpoint, to: Endpoint | undefined): Eventually<void> {
  if (from.ports.length === 0) return undefined;
  const network = to === undefined ? undefined : networks.store.network(to.networkId);
  const old = networks.store.network(from.networkId);
  const driver = network === undefined ? undefined : networks.driverOf(network);
  const isAlike =
    old?.driver === network?.driver &&
    (from.ipAddress === '') === (to?.ipAddress === '') &&
    (from.ipv6 === undefined) === (to?.ipv6 === undefined) &&
    publishAlike(old?.custom?.options ?? {}, network?.custom?.options ?? {});
  if (to === undefined || driver?.movePorts === undefined || !isAlike) {
    networks.store.saveEndpoint({ ...from, ports: [] });
    return unpublishAt(networks, from);
  }
  driver.movePorts(from, to, from.ports);
  networks.store.saveEndpoint({ ...from, ports: [] });
  networks.store.saveEndpoint({ ...to, ports: from.ports });
  return undefined;
}

/** Tells a plugin that its endpoint no longer leads the container out. */
async function revoke(networks: Networks, endpoint: Endpoint): Promise<void> {
  const network = networks.store.network(endpoint.networkId);
  const driver = network === undefined ? undefined : networks.driverOf(network);
  if (driver?.joined !== undefined) await driver.unpublish?.(network!, endpoint, []);
}

/** Gives default route and published ports to the endpoint that leads out now. */
async function settleGateway(
  engine: NetworkNeeds,
  { netns }: Within,
  request: PortRequest,
  before: Endpoint | undefined,
): Promise<void> {
  const { networks } = engine;
  const endpoints = networks.endpointsOf(request.containerId);
  const gateway = gatewayEndpoint(networks, endpoints);
  settleRoutes(networks, netns, endpoints);
  const publisher = endpoints.find(({ ports }) => ports.length > 0);
  if (before?.id === gateway?.id) return;
  if (endpoints.some(({ id }) => id === before?.id)) await revoke(networks, before!);
  if (gateway === undefined || publisher?.id === gateway.id) return;
  const moved = publisher === undefined ? undefined : moveAway(engine, publisher, gateway);
  if (moved !== undefined) await moved;
  if (networks.endpointsOf(request.containerId).some(({ ports }) => ports.length > 0)) return;
  const publishing = publishAt(engine, gateway, request);
  const ports = publishing instanceof Promise ? await publishing : publishing;
  if (ports.length > 0) networks.store.saveEndpoint({ ...gateway, ports });
}
