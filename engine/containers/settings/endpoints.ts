import { refuseIf } from '../../lib/errors.ts';
import type { NetworkingConfig } from '../schema.ts';

/**
 * Checks settings of endpoints that the predefined networks cannot fulfil: returns warnings for those that docker
 * ignores, throws `invalid` for the others.
 */
export function checkEndpoints({ EndpointsConfig }: NetworkingConfig, networkMode: string): string[] {
  const names = Object.keys(EndpointsConfig ?? {}).toSorted();
  refuseIf(names.length > 1, severalNetworks(names));
  const [name] = names;
  if (name === undefined) return [];
  const mode = networkMode === 'default' ? 'bridge' : networkMode;
  refuseIf(name !== mode && name !== 'default', severalNetworks([mode, name]));
  const { IPAMConfig, Aliases, Links } = EndpointsConfig?.[name] ?? {};
  const { IPv4Address = '', IPv6Address = '', LinkLocalIPs = [] } = IPAMConfig ?? {};
  refuseIf(
    IPv4Address !== '' || IPv6Address !== '',
    'user specified IP address is supported on user defined networks only',
  );
  refuseIf(
    (Aliases ?? []).length > 0,
    'network-scoped alias is supported only for containers in user defined networks',
  );
  return [
    ...(LinkLocalIPs.length === 0 ? [] : ['Link-local addresses count on user defined networks only. Discarded.']),
    ...((Links ?? []).length === 0 ? [] : ['Links of an endpoint count on user defined networks only. Discarded.']),
  ];
}

function severalNetworks(names: readonly string[]): string {
  return `Container cannot be connected to network endpoints: ${names.join(', ')}`;
}
