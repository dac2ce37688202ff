import type { EndpointSettings } from '@gantry/engine/networks/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';

import type { Connection, Query } from './connection.ts';

export type { NetworkWire } from '@gantry/engine/networks/schema.ts';

/** The specification's body for a new network. */
type NetworkBody = {
  Name: string;
  CheckDuplicate?: boolean;
  Driver?: string;
  Internal?: boolean;
  EnableIPv6?: boolean;
  IPAM?: {
    Driver?: string;
    Options?: Record<string, string>;
    Config?: { Subnet?: string; IPRange?: string; Gateway?: string; AuxiliaryAddresses?: Record<string, string> }[];
  };
  Options?: Record<string, string>;
  Labels?: Record<string, string>;
};

/** GET /networks. */
export async function listNetworks(engine: Connection, query: Query = {}): Promise<NetworkWire[]> {
  return await engine.call('GET', '/networks', { query });
}

/** POST /networks/create. */
export async function createNetwork(engine: Connection, body: NetworkBody): Promise<{ Id: string; Warning: string }> {
  return await engine.call('POST', '/networks/create', { body });
}

/** GET /networks/{ref}. */
export async function inspectNetwork(engine: Connection, ref: string): Promise<NetworkWire> {
  return await engine.call('GET', path(ref));
}

/** DELETE /networks/{ref}. */
export async function removeNetwork(engine: Connection, ref: string): Promise<void> {
  await engine.call('DELETE', path(ref));
}

/** POST /networks/{ref}/connect. */
export async function connectNetwork(
  engine: Connection,
  ref: string,
  container: string,
  endpoint: EndpointSettings,
): Promise<void> {
  await engine.call('POST', `${path(ref)}/connect`, { body: { Container: container, EndpointConfig: endpoint } });
}

/** POST /networks/{ref}/disconnect. */
export async function disconnectNetwork(
  engine: Connection,
  ref: string,
  container: string,
  force: boolean,
): Promise<void> {
  await engine.call('POST', `${path(ref)}/disconnect`, { body: { Container: container, Force: force } });
}

function path(ref: string): string {
  return `/networks/${encodeURIComponent(ref)}`;
}
