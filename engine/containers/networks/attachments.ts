import { EngineError, refuseIf } from '../../lib/errors.ts';
import { parseIp } from '../../lib/notations/ip-address.ts';
import { checkedMac, checkPlace } from '../../networks/endpoints/checks.ts';
import type { Endpoint } from '../../networks/endpoints/endpoint.ts';
import { interfaceOptions } from '../../networks/endpoints/interface-options.ts';
import type { WantedEndpoint } from '../../networks/endpoints/sandbox.ts';
import type { Networks } from '../../networks/networks.ts';
import type { EndpointSettings } from '../../networks/schema.ts';
import { isPredefinedName, networkModeOf, networkOfMode } from '../../networks/settings/mode.ts';
import { parseLink } from '../links/links.ts';
import type { NetworkingConfig } from '../schema.ts';
import type { Attachment, Container } from '../store.ts';

type Named = Pick<Container, 'id' | 'name' | 'config'>;
type Attachments = Readonly<Record<string, Attachment>>;

const SHORT_ID_LETTERS = 12;

/**
 * The networks of a new container by their names, and warnings for settings that docker ignores. Throws `invalid` for
 * settings that the network cannot fulfil.
 */
export function requestedAttachments(
  networks: Networks,
  { EndpointsConfig }: NetworkingConfig,
  { networkMode, isDisabled }: { networkMode: string; isDisabled: boolean },
): { attachments: Attachments; warnings: string[] } {
  const mode = networkModeOf(networkMode);
  const own = networkOfMode(mode);
  const wanted = new Map<string, EndpointSettings>();
  for (const [ref, settings] of Object.entries(EndpointsConfig ?? {})) {
    if (settings === null) throw new EngineError('invalid', `no EndpointSettings for ${ref}`);
    wanted.set(nameOf(networks, ref), settings);
  }
  const names = [...wanted.keys()].toSorted();
  // Host and none exclude other networks, and a container without a network of its own can have none.
  if (mode.kind !== 'network') {
    const others = names.filter((name) => name !== own);
    refuseIf(others.length > 0, severalNetworks(own === undefined ? names : [own, ...others]));
  }
  const alone = names.filter((name) => name === 'host' || name === 'none');
  refuseIf(alone.length > 0 && names.length > 1, severalNetworks(names));
  if (own === undefined || (isDisabled && mode.kind !== 'host')) return { attachments: {}, warnings: [] };
  // As in dockerd the network of one endpoint stands for that of the mode; several come beside it.
  if (names.length !== 1 && (names.length === 0 || networkMode !== 'default')) wanted.set(own, wanted.get(own) ?? {});
  const warnings = [...wanted].flatMap(([name, settings]) => checkSettings(networks, name, settings));
  const attachments = [...wanted].map(([name, settings]) => [name, attachmentOf(settings)] as const);
  return { attachments: Object.fromEntries(attachments), warnings };
}

function nameOf(networks: Networks, ref: string): string {
  if (ref === 'default') return 'bridge';
  const known = networks.list().some(({ id, name }) => name === ref || id.startsWith(ref));
  return known ? networks.find(ref).name : ref;
}

function severalNetworks(names: readonly string[]): string {
  return `Container cannot be connected to network endpoints: ${names.join(', ')}`;
}

/** Checks the settings, and the addresses if the network is there already. Returns warnings. */
export function checkSettings(
  networks: Networks,
  name: string,
  { IPAMConfig, Aliases, Links, MacAddress = '', DriverOpts }: EndpointSettings,
): string[] {
  if (MacAddress !== '') checkedMac(MacAddress);
  interfaceOptions(DriverOpts ?? {});
  const { IPv4Address = '', IPv6Address = '', LinkLocalIPs } = IPAMConfig ?? {};
  for (const ip of LinkLocalIPs ?? []) {
    refuseIf(parseIp(ip) === undefined, `Invalid link-local IP address: [${ip}]`);
    refuseIf(!isLinkLocal(ip), `invalid link local IP address: ${ip}`);
  }
  if (!isPredefinedName(name)) {
    refuseIf(IPv4Address !== '' && parseIp(IPv4Address)?.family !== 4, `invalid IPv4 address: ${IPv4Address}`);
    refuseIf(IPv6Address !== '' && parseIp(IPv6Address)?.family !== 6, `invalid IPv6 address: ${IPv6Address}`);
    for (const link of Links ?? []) parseLink(link);
    const network = networks.list().find((one) => one.name === name);
    if (network !== undefined) {
      checkPlace(network, 4, IPv4Address);
      checkPlace(network, 6, IPv6Address);
    }
    return [];
  }
  refuseIf(
    IPv4Address !== '' || IPv6Address !== '',
    'user specified IP address is supported on user defined networks only',
  );
  refuseIf(
    (Aliases ?? []).length > 0,
    'network-scoped alias is supported only for containers in user defined networks',
  );
  return [
    ...((LinkLocalIPs ?? []).length > 0 && (name === 'host' || name === 'none')
      ? [`Link-local addresses have no effect in the network ${name}. Discarded.`]
      : []),
    ...((Links ?? []).length === 0 ? [] : ['Links of an endpoint count on user defined networks only. Discarded.']),
  ];
}

function isLinkLocal(ip: string): boolean {
  return ip.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(ip);
}

/** The settings of a client as they are stored, before the container has been in the network. */
export function attachmentOf(settings: EndpointSettings): Attachment {
  const { IPAMConfig, Links, Aliases, MacAddress, DriverOpts, GwPriority = 0 } = settings;
  const aliases = Aliases ?? [];
  return {
    ipam: IPAMConfig == null ? null : givenOf(IPAMConfig),
    links: Links == null || Links.length === 0 ? null : Links,
    aliases: aliases.length === 0 ? null : aliases,
    macAddress: MacAddress ?? '',
    ...(DriverOpts != null && { driverOptions: DriverOpts }),
    ...(GwPriority !== 0 && { gwPriority: GwPriority }),
    networkId: '',
  };
}

/** Without addresses that are empty, and lists that are. */
function givenOf(ipam: NonNullable<Attachment['ipam']>): Attachment['ipam'] {
  return Object.fromEntries(Object.entries(ipam).filter(([, value]) => value !== null && value.length > 0));
}

/** The names of a container in a user network: its own, its aliases there, its short id and its hostname. */
export function namesOf({ id, name, config }: Named, { aliases }: Attachment): string[] {
  const names = [name, ...(aliases ?? []), id.slice(0, SHORT_ID_LETTERS), config.Hostname];
  return [...new Set(names.filter((one) => one !== ''))];
}

/** With the names of the container in this network, where it is a user network. */
export function withNames(container: Named, network: string, attachment: Attachment): Attachment {
  return isPredefinedName(network) ? attachment : { ...attachment, dnsNames: namesOf(container, attachment) };
}

/** The attachments of a running container: with the ids of its networks, and its own names there. */
export function asOfNow(container: Container, endpoints: readonly Endpoint[]): Attachments {
  const shown = endpoints.filter(({ isWayOut }) => isWayOut !== true);
  const joined = shown.map(({ networkId, networkName }): [string, Attachment] => {
    const attachment = { ...(container.attachments[networkName] ?? attachmentOf({})), networkId };
    return [networkName, withNames(container, networkName, attachment)];
  });
  return { ...container.attachments, ...Object.fromEntries(joined) };
}

/** The networks of a start: the network of the mode first, which becomes `eth0`, the others by name. */
export function wantedEndpoints(container: Container): WantedEndpoint[] {
  const { attachments, hostConfig } = container;
  const first = networkOfMode(networkModeOf(hostConfig.NetworkMode));
  const entries = Object.entries(attachments).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [...entries.filter(([name]) => name === first), ...entries.filter(([name]) => name !== first)].map(
    ([name, attachment]) => wantedEndpoint(container, name, attachment),
  );
}

function wantedEndpoint(container: Container, name: string, attachment: Attachment): WantedEndpoint {
  const { ipam, macAddress, networkId, driverOptions, gwPriority } = attachment;
  return {
    // A user network of the same name that was made since is another one, as in dockerd.
    ref: networkId === '' || isPredefinedName(name) ? name : networkId,
    aliases: namesOf(container, attachment).slice(1),
    ip: ipam?.IPv4Address,
    ip6: ipam?.IPv6Address,
    linkLocal: ipam?.LinkLocalIPs ?? [],
    mac: macAddress,
    gwPriority,
    ...interfaceOptions(driverOptions),
  };
}

/** The name under which a container is attached to a network. Throws `failed` if it is not. */
export function attachedName({ id, attachments }: Container, network: string): string {
  if (Object.hasOwn(attachments, network)) return network;
  throw new EngineError('failed', `container ${id} is not connected to network ${network}`);
}
