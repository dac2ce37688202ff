import type { Events } from '../events/events.ts';
import { EngineError, refuseIf } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { KeyLock } from '../lib/key-lock.ts';
import { isPredefinedName } from './mode.ts';
import type { Networks } from './networks.ts';
import type { CreateNetworkBody } from './schema.ts';
import type { Custom, NetworkRecord, PoolConfig } from './store.ts';

type Needs = { networks: Networks; events: Events };
type CreateNeeds = Needs & { locks: KeyLock };

/** Creates a network. Throws `forbidden`, `notFound` (the driver), `conflict`, `invalid`. Specification, endpoint 53. */
export async function createNetwork(
  { locks, networks, events }: CreateNeeds,
  body: CreateNetworkBody,
): Promise<{ id: string; warning: string }> {
  const name = body.Name ?? '';
  refuseIf(name.trim() === '', `invalid name: ${name}`);
  if (isPredefinedName(name)) {
    throw new EngineError('forbidden', `operation is not permitted on predefined ${name} network `);
  }
  using _lock = await locks.hold(`network name ${name}`);
  const [same] = networks.list().filter((network) => network.name === name);
  if (same !== undefined && body.CheckDuplicate === true) {
    throw new EngineError('conflict', `network with name ${name} already exists`);
  }
  const driver = body.Driver || 'bridge';
  const { create } = networks.makingDriver(driver);
  const custom = customOf(body);
  if (custom.ipam.driver !== 'default') throw new EngineError('notFound', `plugin "${custom.ipam.driver}" not found`);
  const { clock, db } = networks.settings;
  const network = await create({ id: newId(), name, driver, createdAt: clock.now(), custom });
  db.transaction(() => {
    networks.store.saveNetwork(network);
    tellNetwork(events, 'create', network);
  });
  const warning = same === undefined ? '' : `Network with name ${name} (id : ${same.id}) already exists`;
  return { id: network.id, warning };
}

/** Removes a network. Throws `forbidden` for a predefined one, and while containers are in it. */
export async function removeNetwork({ networks, events }: Needs, ref: string): Promise<void> {
  const network = networks.find(ref);
  const { name, custom } = network;
  if (custom === undefined) {
    throw new EngineError('forbidden', `${name} is a pre-defined network and cannot be removed`);
  }
  using _removal = networks.uses.remove(network);
  const driver = networks.driverOf(network);
  await driver.retire?.(network);
  networks.settings.db.transaction(() => {
    networks.store.deleteNetwork(network);
    tellNetwork(events, 'destroy', network);
  });
  driver.remove?.(network);
}

function tellNetwork(events: Events, action: 'create' | 'destroy', { id, name, driver }: NetworkRecord): void {
  events.emit('network', action, id, { name, type: driver });
}

function customOf(body: CreateNetworkBody): Custom {
  const { Driver, Options, Config } = body.IPAM ?? {};
  return {
    internal: body.Internal ?? false,
    attachable: body.Attachable ?? false,
    enableIPv6: body.EnableIPv6 ?? false,
    options: body.Options ?? {},
    labels: body.Labels ?? {},
    ipam: { driver: Driver || 'default', options: Options ?? null, pools: (Config ?? []).map(poolOf) },
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
