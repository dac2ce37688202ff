import type { Engine } from '../engine.ts';
import type { Events } from '../events/events.ts';
import { EngineError, refuseIf } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { refuseManyLabels } from '../records/labels.ts';
import { noRangeOfSix } from './addresses/choose.ts';
import { poolsByFamily } from './addresses/pools.ts';
import { findNetwork } from './list.ts';
import type { Networks } from './networks.ts';
import type { NetworkCluster } from './overlay/cluster-networks.ts';
import type { CreateNetworkBody } from './schema.ts';
import {
  checkConfiguration,
  CONFIGURATION_DRIVER,
  configuredBy,
  refuseConfigurationInUse,
} from './settings/configurations.ts';
import { isPredefinedName } from './settings/mode.ts';
import type { Custom, NetworkRecord, PoolConfig } from './store.ts';

type Needs = Pick<Engine, 'networks' | 'events'> & { cluster: NetworkCluster };
/** The meaning of a creation by older clients. */
export type CreateDefaults = Readonly<{
  /** Whether a second network may have the name. */
  allowsDuplicates?: boolean;
  /** Whether IPv6 needs a subnet of the client: otherwise one is chosen. */
  needsSixSubnet?: boolean;
}>;

type CreateNeeds = Needs & Pick<Engine, 'locks'>;

/** Each is compared with all others, and with the routes of the machine. */
const MAX_SUBNETS = 128;

/** Creates a network. Throws `forbidden`, `notFound` (the driver), `conflict`, `invalid`. Specification, endpoint 53. */
export async function createNetwork(
  { cluster, locks, networks, events }: CreateNeeds,
  body: CreateNetworkBody & CreateDefaults,
): Promise<{ id: string; warning: string }> {
  const name = body.Name ?? '';
  refuseIf(name.trim() === '', `invalid name: ${name}`);
  if (body.Ingress === true && body.Driver !== 'overlay') {
    throw new EngineError('forbidden', 'Ingress network can only be global scope network');
  }
  refuseManyLabels(body.Labels, 'the network');
  const subnets = body.IPAM?.Config?.length ?? 0;
  refuseIf(subnets > MAX_SUBNETS, `invalid network config: more than ${MAX_SUBNETS} subnets`);
  checkConfiguration(body);
  checkFamilies(body);
  if (isPredefinedName(name)) {
    throw new EngineError('forbidden', `operation is not permitted on predefined ${name} network `);
  }
  const [driver, ipam] = [body.Driver || 'bridge', body.IPAM?.Driver || 'default'];
  await networks.awaitPlugins(driver, ipam);
  using _lock = await locks.hold(`network name ${name}`);
  if (networks.settings.ofCluster(name) !== undefined)
    throw new EngineError('conflict', `network with name ${name} already exists`);
  const [same] = networks.list().filter((network) => network.name === name);
  if (same !== undefined && body.allowsDuplicates !== true) {
    throw new EngineError('conflict', `network with name ${name} already exists`);
  }
  if (driver === 'overlay') return { id: await createInCluster(cluster, body), warning: '' };
  const network = await make(networks, name, body, { driver, ipam });
  const { db } = networks.settings;
  db.transaction(() => {
    networks.store.saveNetwork(network);
    networks.cleanups.forget(network.id);
    tellNetwork(events, 'create', network);
  });
  const warning = same === undefined ? '' : `Network with name ${name} (id : ${same.id}) already exists`;
  return { id: network.id, warning };
}

function checkFamilies({ EnableIPv4, EnableIPv6, Driver }: CreateNetworkBody): void {
  if (EnableIPv4 !== false) return;
  refuseIf(EnableIPv6 !== true, 'IPv4 or IPv6 must be enabled');
  if ((Driver || 'bridge') === 'bridge') return;
  throw new EngineError('notImplemented', `networks of the driver ${Driver} without IPv4 are not implemented`);
}

/** Throws on workers and outside of a cluster. */
async function createInCluster(cluster: NetworkCluster, body: CreateNetworkBody): Promise<string> {
  cluster.manager();
  return await (await cluster.networks())!.create(body);
}

/** Plugins undo their part of a network whose creation fails. */
async function make(
  networks: Networks,
  name: string,
  body: CreateNetworkBody & CreateDefaults,
  asked: { driver: string; ipam: string },
): Promise<NetworkRecord> {
  const made = { id: newId(), name, createdAt: networks.settings.clock.now() };
  if (body.ConfigOnly === true) {
    return { ...made, driver: CONFIGURATION_DRIVER, custom: { ...customOf(body, asked.ipam), configOnly: true } };
  }
  const { driver, ipam } = networks.making(asked.driver, asked.ipam);
  const own = customOf(body, ipam);
  const from = body.ConfigFrom?.Network ?? '';
  const custom = from === '' ? own : configuredBy(networks.list(), from, own);
  const hasSix = poolsByFamily(custom.ipam.pools).six.length > 0;
  if (body.needsSixSubnet === true && custom.enableIPv6 && ipam === 'default' && !hasSix) throw noRangeOfSix();
  try {
    return await networks.driverOf({ ...made, driver, custom }).create!({ ...made, driver, custom });
  } catch (error) {
    await networks.cleanups.flushSoon(made.id);
    throw error;
  }
}

/** Removes a network. Throws `forbidden` for a predefined one, and while containers are in it. */
export async function removeNetwork({ cluster, networks, events }: Needs, ref: string): Promise<void> {
  const ofCluster = await cluster.networks();
  const network = findNetwork({ networks }, ref, ofCluster);
  const { id, name, custom, overlay } = network;
  if (overlay !== undefined) {
    cluster.manager();
    return await ofCluster!.remove(id);
  }
  if (custom === undefined) {
    throw new EngineError('forbidden', `${name} is a pre-defined network and cannot be removed`);
  }
  refuseConfigurationInUse(networks.list(), network);
  using _removal = networks.uses.remove(network);
  const driver = networks.driverOf(network);
  const cleanupCalls = driver.cleanupCalls?.network(network) ?? [];
  for (const { plugin } of cleanupCalls) networks.checkPlugin(plugin);
  networks.settings.db.transaction(() => {
    networks.store.deleteNetwork(network);
    networks.cleanups.set(id, id, cleanupCalls);
    tellNetwork(events, 'destroy', network);
  });
  driver.remove?.(network);
  if (cleanupCalls.length > 0) await networks.cleanups.flushSoon(id);
}

function tellNetwork(events: Events, action: 'create' | 'destroy', { id, name, driver }: NetworkRecord): void {
  events.emit('network', action, id, { name, type: driver });
}

function customOf(body: CreateNetworkBody, ipam: string): Custom {
  const { Options, Config } = body.IPAM ?? {};
  return {
    internal: body.Internal ?? false,
    attachable: body.Attachable ?? false,
    enableIPv6: body.EnableIPv6 ?? false,
    ...(body.EnableIPv4 === false && { enableIPv4: false as const }),
    options: body.Options ?? {},
    labels: body.Labels ?? {},
    ipam: { driver: ipam, options: Options ?? null, pools: (Config ?? []).map(poolOf) },
  };
}

type PoolWire = NonNullable<NonNullable<NonNullable<CreateNetworkBody['IPAM']>['Config']>[number]>;

function poolOf(wire: PoolWire | null): PoolConfig {
  const { Subnet, IPRange, Gateway, AuxiliaryAddresses, AuxAddress } = wire ?? {};
  const auxiliary = AuxiliaryAddresses ?? AuxAddress;
  return {
    subnet: Subnet ?? '',
    ...(IPRange ? { range: IPRange } : {}),
    ...(Gateway ? { gateway: Gateway } : {}),
    ...(auxiliary && Object.keys(auxiliary).length > 0 ? { auxiliary } : {}),
  };
}
