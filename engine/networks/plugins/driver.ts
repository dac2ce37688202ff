import { closeSync } from 'node:fs';

import type { Static } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { PluginError, type Plugin, type Plugins } from '../../plugins/plugins.ts';
import { storedAddresses } from '../addresses/choose.ts';
import { PlaceLeases } from '../addresses/place-leases.ts';
import type { NetworkDriver, NewEndpoint } from '../drivers/driver.ts';
import { addressesOf, NO_PLACE, type Endpoint, type Place } from '../endpoints/endpoint.ts';
import { userNetns } from '../endpoints/namespace.ts';
import type { NetworkRecord } from '../store.ts';
import { endpointBody, networkBody, portOptions, routesOf, withGateways, withInterface } from './bodies.ts';
import type { CleanupQueue, PluginCall } from './cleanup-queue.ts';
import { ask, Capabilities, CreatedEndpoint, JoinedEndpoint, Nothing, PATIENT, pluginOf } from './network-protocol.ts';
import { announceLink, placeLink, returnLink } from './place-link.ts';

export type PluginDriverParts = Readonly<{
  plugins: Plugins;
  cleanups: CleanupQueue;
  endpointsIn: (networkId: string) => readonly Endpoint[];
  /** The record with the addresses that are chosen for a new network, or were by a plugin. */
  addressed: (network: NetworkRecord) => NetworkRecord;
}>;

const KIND = 'NetworkDriver';

/** Networks that a plugin makes: its protocol is that of docker's remote network drivers. */
export function pluginDriver(name: string, parts: PluginDriverParts): NetworkDriver {
  const { cleanups, plugins } = parts;
  const leases = new Map<string, PlaceLeases>();
  const checked = new WeakSet<Plugin>();
  const call = (method: string, body: PluginCall['body']): PluginCall => ({ plugin: name, kind: KIND, method, body });
  const leasesOf = (network: NetworkRecord): PlaceLeases => {
    const used = parts.endpointsIn(network.id).flatMap(addressesOf);
    const known = leases.get(network.id) ?? new PlaceLeases(storedAddresses(network), used);
    leases.set(network.id, known);
    return known;
  };

  /** Notes what the plugin would have to take back; not if it refuses. */
  async function createNoted<T>(
    id: string,
    network: NetworkRecord,
    undoing: PluginCall,
    making: () => Promise<T>,
  ): Promise<T> {
    cleanups.prepend(id, network.id, undoing);
    try {
      return await making();
    } catch (error) {
      if (error instanceof PluginError && error.how === 'refused') cleanups.dropFirst(id, network.id);
      throw error;
    }
  }

  async function create(network: NetworkRecord): Promise<NetworkRecord> {
    const plugin = await plugins.get(name, KIND, PATIENT);
    if (!checked.has(plugin)) await checkScope(plugin);
    checked.add(plugin);
    const complete = parts.addressed(network);
    const undoing = call('DeleteNetwork', { NetworkID: network.id });
    await createNoted(network.id, network, undoing, async () => {
      await ask(plugin, `${KIND}.CreateNetwork`, networkBody(complete), Nothing);
    });
    return complete;
  }

  /** Without addresses of the engine the plugin has its own. */
  function lend(network: NetworkRecord, wanted: NewEndpoint, undo: DisposableStack): Place {
    const macAddress = wanted.mac ?? '';
    if (network.subnet === undefined) return { ...NO_PLACE, macAddress };
    return { ...leasesOf(network).take(wanted, undo), macAddress, link: '' };
  }

  async function place(
    network: NetworkRecord,
    wanted: NewEndpoint,
    to: { netns: number; leadsOut: boolean },
  ): Promise<Place> {
    const { id } = wanted;
    const ids = { NetworkID: network.id, EndpointID: id };
    using undo = new DisposableStack();
    const plugin = await pluginOf(plugins, name, KIND);
    await cleanups.flushEndpoints(network.id);
    const lent = lend(network, wanted, undo);
    const { Interface } = await createNoted(
      id,
      network,
      call('DeleteEndpoint', ids),
      async () => await createEndpoint(plugin, network, wanted, { ...ids, ...endpointBody(lent, wanted) }),
    );
    const chosen = withInterface(lent, Interface ?? {});
    const joining = { ...ids, SandboxKey: `/proc/${process.pid}/fd/${to.netns}`, Options: portOptions(wanted) };
    const joined = await createNoted(
      id,
      network,
      call('Leave', ids),
      async () => await ask(plugin, `${KIND}.Join`, joining, JoinedEndpoint),
    );
    const { SrcName = '', DstPrefix = '' } = joined.InterfaceName ?? {};
    const placed = { ...withGateways(chosen, joined), link: SrcName };
    const settings = { ...wanted, ...to, plugin: name, routes: routesOf(joined), prefix: DstPrefix || 'eth' };
    const macAddress = SrcName === '' ? placed.macAddress : placeLink(placed, settings);
    if (SrcName !== '') await announceLink(to.netns, macAddress);
    undo.move();
    return { ...placed, macAddress };
  }

  return {
    name,
    create,
    remove: ({ id }) => void leases.delete(id),
    join: async (network, wanted) => {
      using undo = new DisposableStack();
      const netns = userNetns();
      undo.defer(() => closeSync(netns));
      const placed = await place(network, wanted, { netns, leadsOut: leadsOut(network) });
      undo.move();
      return { netns, place: placed };
    },
    joinInto: async (network, wanted, { netns }) => await place(network, wanted, { netns, leadsOut: false }),
    joined: async ({ id: NetworkID }, { id: EndpointID }) => {
      const plugin = await pluginOf(plugins, name, KIND);
      await optional(plugin, `${KIND}.EndpointOperInfo`, { NetworkID, EndpointID });
    },
    leave: (network, left, within) => {
      if (within !== undefined) returnLink(left, within.netns);
      leases.get(network.id)?.release(left);
    },
    publish: async (network, { id }, ports, exposed) => {
      const ids = { NetworkID: network.id, EndpointID: id };
      const plugin = await pluginOf(plugins, name, KIND);
      if (cleanups.has(id)) cleanups.prepend(id, network.id, call('RevokeExternalConnectivity', ids));
      const body = { ...ids, Options: portOptions({ ports, exposed }) };
      await optional(plugin, `${KIND}.ProgramExternalConnectivity`, body);
      return [];
    },
    unpublish: async (network, { id }) => {
      const plugin = await pluginOf(plugins, name, KIND);
      await optional(plugin, `${KIND}.RevokeExternalConnectivity`, { NetworkID: network.id, EndpointID: id });
    },
    leadsOut,
    options: ({ custom }) => ({ ...custom?.options }),
    cleanupCalls: {
      network: ({ id }) => [call('DeleteNetwork', { NetworkID: id })],
      endpoint: ({ id: NetworkID }, { id: EndpointID }, isGateway) =>
        [...(isGateway ? ['RevokeExternalConnectivity'] : []), 'Leave', 'DeleteEndpoint'].map((method) =>
          call(method, { NetworkID, EndpointID }),
        ),
    },
  };
}

function leadsOut({ custom }: NetworkRecord): boolean {
  return custom?.internal !== true;
}

async function createEndpoint(
  plugin: Plugin,
  network: NetworkRecord,
  { containerName }: NewEndpoint,
  body: object,
): Promise<Static<typeof CreatedEndpoint>> {
  try {
    return await ask(plugin, `${KIND}.CreateEndpoint`, body, CreatedEndpoint);
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    const where = `failed to create endpoint ${containerName} on network ${network.name}`;
    throw new PluginError(error.how, `${where}: ${error.message}`, { status: error.status, cause: error });
  }
}

/** Throws `failed` for a plugin that does not say where its networks reach. */
async function checkScope(plugin: Plugin): Promise<void> {
  const { Scope } = await ask(plugin, `${KIND}.GetCapabilities`, {}, Capabilities);
  if (Scope === 'local' || Scope === 'global') return;
  throw new EngineError('failed', `invalid capability: expecting 'local' or 'global', got ${Scope}`);
}

/** A method that not every plugin has. */
async function optional(plugin: Plugin, method: string, body: object): Promise<void> {
  try {
    await ask(plugin, method, body, Nothing);
  } catch (error) {
    if (!(error instanceof PluginError) || error.status !== 404) throw error;
  }
}
