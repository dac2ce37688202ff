import { closeSync } from 'node:fs';

import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { loopbackNetns } from './bridge/ready-sandboxes.ts';
import type { Networks } from './networks.ts';
import { wantedPorts, type PortBindings, type PublishedPort } from './ports.ts';
import type { NetworkRecord } from './store.ts';

/** A container's place in a network, as it is stored while the container runs. */
export type Attachment = Readonly<{
  containerId: string;
  networkId: string;
  networkName: string;
  endpointId: string;
  sandboxId: string;
  /** The host's end of the container's `eth0`; empty in the networks `host` and `none`. */
  link: string;
  /** Empty in the networks `host` and `none`, as are gateway and MAC address; the prefix length is 0 there. */
  ipAddress: string;
  prefixLength: number;
  gateway: string;
  macAddress: string;
  ports: readonly PublishedPort[];
}>;

export type AttachRequest = Readonly<{
  containerId: string;
  /** Without the leading slash; error messages name it. */
  containerName: string;
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

/** `netns` is an open file descriptor, closed by the caller as soon as the shim has inherited it. */
export type Leased = { netns: number; attachment: Attachment };

export type NetworkNeeds = { networks: Networks; events: Events };

/**
 * A namespace for a container on the bridge network: leased, addressed, ports published. A failure changes nothing.
 *
 * The caller gives everything back with `detach`, also when the start fails later on.
 */
export async function attachBridge(engine: NetworkNeeds, request: AttachRequest): Promise<Leased> {
  const bridge = engine.networks.bridge();
  const wanted = wantedPorts(request.portBindings, request.publishAll, request.exposed);
  const mac = request.mac === undefined || request.mac === '' ? undefined : checkedMac(request.mac);
  await bridge.admit();
  detach(engine, request.containerId);
  // Synchronous from here to the end: two starts cannot meet half way.
  const network = engine.networks.predefined('bridge');
  const endpointId = newId();
  using undo = new DisposableStack();
  const { netns, link, ipAddress, macAddress } = bridge.join({ ip: request.ip, mac });
  undo.defer(() => bridge.leave(ipAddress));
  undo.defer(() => closeSync(netns));
  const ports = describing(engine, network, request, endpointId, () => bridge.publish(ipAddress, wanted));
  undo.defer(() => bridge.unpublish(ipAddress, ports));
  const attachment: Attachment = {
    ...placeIn(network, request.containerId, endpointId),
    link,
    ipAddress,
    prefixLength: bridge.prefixLength,
    gateway: bridge.settings.gateway,
    macAddress,
    ports,
  };
  engine.networks.store.insertAttachment(attachment);
  undo.move();
  tell(engine, 'connect', network, request.containerId);
  return { netns, attachment };
}

/** A namespace with loopback only. */
export function attachNone(engine: NetworkNeeds, containerId: string): Leased {
  detach(engine, containerId);
  const netns = loopbackNetns();
  try {
    return { netns, attachment: record(engine, engine.networks.predefined('none'), containerId) };
  } catch (error) {
    closeSync(netns);
    throw error;
  }
}

/** The same for a container that is in no network: its own is disabled, or the daemon has no bridge. */
export function leaseNothing(engine: NetworkNeeds, containerId: string): { netns: number } {
  detach(engine, containerId);
  return { netns: loopbackNetns() };
}

/** The machine's own network: there is no namespace to hand out, only a record that the container is in it. */
export function attachHost(engine: NetworkNeeds, containerId: string): Attachment {
  detach(engine, containerId);
  return record(engine, engine.networks.predefined('host'), containerId);
}

/**
 * Ends the publishing and frees ports and address, after the commit where there is a transaction: an attachment that is
 * rolled back keeps them. Synchronous and cheap; a container that is not attached is no error.
 *
 * Namespace and links are not touched: the kernel removes them when the last process that holds them is gone.
 */
export function detach(engine: NetworkNeeds, containerId: string): void {
  const attachment = engine.networks.attachmentOf(containerId);
  if (attachment === undefined) return;
  engine.networks.store.deleteAttachment(containerId);
  engine.networks.giveBack(attachment);
  const network = engine.networks.store.network(attachment.networkId);
  if (network !== undefined) tell(engine, 'disconnect', network, containerId);
}

/**
 * At the daemon's start: forgets the attachments of containers that are not alive any more, then sets up the bridge
 * with the rules and ports of those that are.
 *
 * Rules are written as a whole, so that whatever a killed daemon left half done is gone afterwards.
 */
export async function reconcile(engine: NetworkNeeds, liveContainerIds: Iterable<string>): Promise<void> {
  const live = new Set(liveContainerIds);
  const { store } = engine.networks;
  for (const { containerId, networkId } of store.attachments()) {
    if (live.has(containerId)) continue;
    store.deleteAttachment(containerId);
    const network = store.network(networkId);
    if (network !== undefined) tell(engine, 'disconnect', network, containerId);
  }
  await engine.networks.start();
}

function record(engine: NetworkNeeds, network: NetworkRecord, containerId: string): Attachment {
  const attachment: Attachment = {
    ...placeIn(network, containerId, newId()),
    link: '',
    ipAddress: '',
    prefixLength: 0,
    gateway: '',
    macAddress: '',
    ports: [],
  };
  engine.networks.store.insertAttachment(attachment);
  tell(engine, 'connect', network, containerId);
  return attachment;
}

type Place = Pick<Attachment, 'containerId' | 'networkId' | 'networkName' | 'endpointId' | 'sandboxId'>;

function placeIn(network: NetworkRecord, containerId: string, endpointId: string): Place {
  return { containerId, networkId: network.id, networkName: network.name, endpointId, sandboxId: newId() };
}

/** Gives a refusal of the ports the words that clients know, and tells the disconnect that dockerd tells then. */
function describing<T>(
  engine: NetworkNeeds,
  network: NetworkRecord,
  { containerId, containerName }: AttachRequest,
  endpointId: string,
  publish: () => T,
): T {
  try {
    return publish();
  } catch (error) {
    tell(engine, 'disconnect', network, containerId);
    if (!(error instanceof EngineError)) throw error;
    const where = `driver failed programming external connectivity on endpoint ${containerName} (${endpointId})`;
    throw new EngineError(error.kind, `${where}: ${error.message}`, { cause: error });
  }
}

function checkedMac(mac: string): string {
  const text = mac.toLowerCase().replaceAll('-', ':');
  // The lowest bit of the first byte marks a group's address, which no link can have.
  if (!/^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/.test(text)) {
    throw new EngineError('invalid', `invalid MAC address: ${mac}`);
  }
  return text;
}

function tell(engine: NetworkNeeds, action: 'connect' | 'disconnect', network: NetworkRecord, container: string): void {
  engine.events.emit('network', action, network.id, { container, name: network.name, type: network.driver });
}
