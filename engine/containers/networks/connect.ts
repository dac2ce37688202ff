import { closeSync, openSync } from 'node:fs';

import type { Engine } from '../../engine.ts';
import { EngineError, hasCode, refuseIf } from '../../lib/errors.ts';
import { attachAll } from '../../networks/endpoints/attach.ts';
import { joinRunning, leaveRunning } from '../../networks/endpoints/connect.ts';
import { addressesOf } from '../../networks/endpoints/endpoint.ts';
import { interfaceOptions } from '../../networks/endpoints/interface-options.ts';
import { cannotShare, type NetworkNeeds } from '../../networks/endpoints/sandbox.ts';
import { notAttachable } from '../../networks/overlay/overlays.ts';
import type { EndpointSettings } from '../../networks/schema.ts';
import { networkModeOf } from '../../networks/settings/mode.ts';
import type { NetworkRecord } from '../../networks/store.ts';
import { addHostsAddresses, dropHostsAddresses, useResolver } from '../runs/preparation/etc-files.ts';
import { portRequest } from '../runs/preparation/namespaces.ts';
import { isAlive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { attachedName, attachmentOf, checkSettings, namesOf, withNames } from './attachments.ts';
import { leaveLostNetwork } from './leave-lost-network.ts';
import { holderOf, registrationOf, usesResolver } from './registrations.ts';

type ConnectNeeds = NetworkNeeds & Pick<Engine, 'config' | 'containers' | 'locks'>;

type Wanted = Readonly<{ network: string; container: string }>;

/**
 * Connects a container with one more network: at once if it is running, otherwise at its next start. Specification,
 * endpoint 54.
 *
 * Throws `notFound`, `forbidden`, and `invalid` where the networks do not go together.
 */
export async function connectContainer(
  engine: ConnectNeeds,
  wanted: Wanted,
  settings: EndpointSettings,
): Promise<void> {
  refuseClosed(engine, wanted);
  if (attachLater(engine, wanted, settings)) return;
  using attached = await attachNow(engine, wanted, settings);
  const { network, id } = findTargets(engine, wanted);
  using _lock = await engine.locks.hold(id);
  const container = engine.containers.find(id);
  checkModes(container, network);
  checkSettings(engine.networks, network.name, settings);
  const { name } = network;
  const attach = (networkId: string): void => {
    engine.containers.change(id, (current) => {
      const attachment = withNames(current, name, attachmentOf(settings));
      return { ...current, attachments: { ...current.attachments, [name]: { ...attachment, networkId } } };
    });
  };
  if (!isAlive(container.state)) {
    attach('');
    return;
  }
  using within = enter(container.state.pid);
  const endpoint = await joinRunning(
    engine,
    {
      ref: network.id,
      ip: settings.IPAMConfig?.IPv4Address,
      ip6: settings.IPAMConfig?.IPv6Address,
      mac: settings.MacAddress,
      linkLocal: settings.IPAMConfig?.LinkLocalIPs ?? [],
      gwPriority: settings.GwPriority,
      ...interfaceOptions(settings.DriverOpts ?? {}),
    },
    { within, request: portRequest(container), commit: () => attach(network.id) },
  );
  attached.move();
  const { networks } = engine;
  const isFirst = !networks.dns.isServed(id);
  if (usesResolver(networks.endpointsOf(id))) {
    try {
      await tellNames(engine, id, container.state.pid);
    } catch (error) {
      // Without its names the network is useless, so the connection is undone and the client gets the error.
      const commit = (): void => restoreAttachments(engine.containers, container);
      await leaveRunning(engine, endpoint, { within, request: portRequest(container), commit });
      tellNamesLater(engine, id, container.state.pid);
      throw error;
    }
    if (isFirst) useResolver(engine.config, container);
  }
  addHostsAddresses(engine.config, container, addressesOf(endpoint));
}

/** A network that lets no containers in would fail each start of one that does not run, which is all that dockerd does. */
function refuseClosed({ containers, networks }: ConnectNeeds, { network: ref, container }: Wanted): void {
  if (!networks.overlays.attachments.isInCluster || isAlive(containers.find(container).state)) return;
  const known = networks.known(ref);
  const isClosed =
    known === undefined
      ? networks.settings.ofCluster(ref)?.isAttachable === false
      : known.overlay !== undefined && known.custom?.attachable !== true;
  if (isClosed) throw notAttachable(known?.name ?? ref, 'forbidden');
}

/** A network of the cluster that this node does not know may get known at the container's start, which says if it does not. */
function attachLater(engine: ConnectNeeds, { network, container: ref }: Wanted, settings: EndpointSettings): boolean {
  const { containers, networks } = engine;
  if (!networks.overlays.attachments.isInCluster || networks.known(network) !== undefined) return false;
  const container = containers.find(ref);
  if (isAlive(container.state)) return false;
  checkSettings(engine.networks, network, settings);
  containers.change(container.id, (current) => {
    const attachment = withNames(current, network, attachmentOf(settings));
    return { ...current, attachments: { ...current.attachments, [network]: attachment } };
  });
  return true;
}

/** Gets a running container into a network of the cluster; what is disposed of takes it out again. */
async function attachNow(
  { containers, networks }: ConnectNeeds,
  { network, container: ref }: Wanted,
  settings: EndpointSettings,
): Promise<DisposableStack> {
  const container = containers.find(ref);
  const isNeeded = networks.overlays.attachments.isInCluster && isAlive(container.state);
  const aliases = namesOf(container, attachmentOf(settings)).slice(1);
  const wanted = { ref: network, aliases, ip: settings.IPAMConfig?.IPv4Address };
  return await attachAll(networks, isNeeded ? [wanted] : [], container.name);
}

function restoreAttachments(containers: ContainerStore, { id, attachments }: Container): void {
  containers.change(id, (current) => ({ ...current, attachments }));
}

async function tellNames(engine: ConnectNeeds, id: string, pid: number): Promise<void> {
  await engine.networks.dns.serve(registrationOf(engine, engine.containers.find(id), holderOf(pid)));
}

/** Whether the resolver is told at all: one that is away gets all names when it is back. */
function tellNamesLater(engine: ConnectNeeds, id: string, pid: number): void {
  const { dns } = engine.networks;
  if (usesResolver(engine.networks.endpointsOf(id))) {
    dns.change(registrationOf(engine, engine.containers.find(id), holderOf(pid)));
  } else {
    dns.forget(id);
  }
}

/** Disconnects a container from a network; `isForced`: also from one that is gone. Specification, endpoint 55. */
export async function disconnectContainer(
  engine: ConnectNeeds,
  wanted: Wanted & { isForced?: boolean },
): Promise<void> {
  const isNamed = wanted.container !== '';
  if (isNamed && wanted.isForced === true && (await leaveLostNetwork(engine, wanted))) return;
  if (detachUnknown(engine, wanted)) return;
  const { network, id } = findTargets(engine, wanted);
  using _lock = await engine.locks.hold(id);
  const container = engine.containers.find(id);
  const name = attachedName(container, network.name);
  const detach = (): void => {
    engine.containers.change(id, (current) => {
      const { [name]: _left, ...rest } = current.attachments;
      return { ...current, attachments: rest };
    });
  };
  const endpoint = engine.networks.endpointsOf(id).find(({ networkId }) => networkId === network.id);
  if (!isAlive(container.state) || endpoint === undefined) {
    detach();
    return;
  }
  using within = enter(container.state.pid);
  await leaveRunning(engine, endpoint, { within, request: portRequest(container), commit: detach });
  dropHostsAddresses(engine.config, container, addressesOf(endpoint));
  if (!engine.networks.dns.isServed(id)) return;
  try {
    await tellNames(engine, id, container.state.pid);
  } catch (error) {
    // It has left all the same.
    if (!(error instanceof EngineError)) throw error;
    tellNamesLater(engine, id, container.state.pid);
  }
}

/** Detaches a container that does not run from a network of the cluster that this node does not know now. */
function detachUnknown({ containers, networks }: ConnectNeeds, { network, container: ref }: Wanted): boolean {
  if (!networks.overlays.attachments.isInCluster || networks.known(network) !== undefined) return false;
  const { id, state, attachments } = containers.find(ref);
  if (isAlive(state) || !Object.hasOwn(attachments, network)) return false;
  containers.change(id, (current) => {
    const { [network]: _left, ...rest } = current.attachments;
    return { ...current, attachments: rest };
  });
  return true;
}

/** Throws `forbidden` for the network `host`. */
function findTargets(
  { networks, containers }: ConnectNeeds,
  { network: networkRef, container: ref }: Wanted,
): { network: NetworkRecord; id: string } {
  const network = networks.find(networkRef);
  const isHost = network.custom === undefined && network.name === 'host';
  if (isHost) throw new EngineError('forbidden', cannotShare(network).message);
  refuseIf(ref === '', 'invalid name or ID supplied: ""');
  return { network, id: containers.find(ref).id };
}

function checkModes({ attachments, hostConfig, state }: Container, network: NetworkRecord): void {
  const { kind } = networkModeOf(hostConfig.NetworkMode);
  const shares = kind === 'host' || (kind === 'container' && isAlive(state));
  refuseIf(
    shares,
    'container sharing network namespace with another container or host cannot be connected to any other network',
  );
  const isNone = network.custom === undefined && network.name === 'none';
  if ((isNone && Object.keys(attachments).length > 0) || Object.hasOwn(attachments, 'none')) {
    throw cannotShare({ ...network, name: 'none' });
  }
}

/** The network namespace of a process. */
function enter(pid: number): Disposable & { netns: number } {
  try {
    const netns = openSync(`/proc/${pid}/ns/net`, 'r');
    return { netns, [Symbol.dispose]: () => closeSync(netns) };
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ESRCH')) throw error;
    throw new EngineError('failed', 'the container has just ended', { cause: error });
  }
}
