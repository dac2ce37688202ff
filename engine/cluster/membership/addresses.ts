import { isIP } from 'node:net';
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';

import { EngineError } from '../../lib/errors.ts';
import { isHost } from '../../lib/notations/field-schemas.ts';
import { parseIp } from '../../lib/notations/ip-address.ts';

const CLUSTER_PORT = 2377;
export type Address = Readonly<{ ip: string; port: number }>;
type Links = Readonly<
  Record<string, readonly Pick<NetworkInterfaceInfo, 'address' | 'family' | 'internal'>[] | undefined>
>;

const BAD_LISTEN = 'listen address must be an IP address or network interface (with optional port number)';
const BAD_ADVERTISE =
  'advertise address must be a non-zero IP address or network interface (with optional port number)';
const BAD_DATA_PATH = 'data path address must be a non-zero IP address or network interface (without a port number)';
const [MIN_TUNNEL_PORT, MAX_TUNNEL_PORT] = [1024, 49_151];
const ANY = new Set(['0.0.0.0', '::']);

/** `ip:port`, with an address of IPv6 in brackets. */
export function addressText({ ip, port }: Address): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

/** The reverse of `addressText`. */
export function readAddress(text: string): Address {
  const colon = text.lastIndexOf(':');
  return { ip: text.slice(0, colon).replaceAll(/[[\]]/g, ''), port: Number(text.slice(colon + 1)) };
}

/** Where a manager listens: `ip` or an interface, with a port or without one. */
export function listenAddress(text: string, links: Links = networkInterfaces()): Address {
  if (text === '') throw new EngineError('invalid', 'invalid ListenAddr "": invalid empty address');
  return resolve(text, CLUSTER_PORT, links, BAD_LISTEN);
}

/** The address for others: the given one, or else where it listens, or the machine's only address. */
export function advertiseAddress(
  text: string,
  listen: Address,
  ownLinks: (name: string) => boolean,
  links: Links = networkInterfaces(),
): Address {
  if (text !== '') {
    const address = resolve(text, listen.port, links, BAD_ADVERTISE);
    if (!isHost(address.ip)) throw new EngineError('invalid', BAD_ADVERTISE);
    return address;
  }
  if (!ANY.has(listen.ip)) return listen;
  return { ip: onlyAddress(links, ownLinks), port: listen.port };
}

/** The address for the traffic of overlays: an address of this machine or the first of an interface. Undefined: not named. */
export function dataPathAddress(text: string, links: Links = networkInterfaces()): string | undefined {
  if (text === '') return undefined;
  if (text.includes(':') && parseIp(text) === undefined) throw new EngineError('invalid', BAD_DATA_PATH);
  const { ip } = resolve(text, CLUSTER_PORT, links, BAD_DATA_PATH);
  if (!isHost(ip)) throw new EngineError('invalid', BAD_DATA_PATH);
  return ip;
}

/** The port of the tunnels of a new cluster. Undefined: VXLAN's. */
export function tunnelPort(port: number): number | undefined {
  if (port === 0) return undefined;
  if (port >= MIN_TUNNEL_PORT && port <= MAX_TUNNEL_PORT) return port;
  const range = `${MIN_TUNNEL_PORT}-${MAX_TUNNEL_PORT}`;
  throw new EngineError('failed', `Datapath port number is not in valid range (${range}) : ${port}`);
}

/** A manager as a client names it; interfaces of this machine mean nothing there. */
export function remoteAddress(text: string): string {
  const { host, port } = split(text, CLUSTER_PORT) ?? {};
  if (host === undefined || host === '' || port === undefined) {
    throw new EngineError('invalid', `invalid address of a manager: "${text}"`);
  }
  return addressText({ ip: host, port });
}

function resolve(text: string, defaultPort: number, links: Links, refusal: string): Address {
  const parts = split(text, defaultPort);
  if (parts === undefined) throw new EngineError('invalid', refusal);
  const { host, port } = parts;
  if (parseIp(host) !== undefined) return { ip: host, port }; // an address with a zone means nothing elsewhere
  const found = (Object.hasOwn(links, host) ? links[host] : undefined) ?? [];
  const address =
    found.find(({ family }) => family === 'IPv4') ?? found.find(({ address }) => !address.startsWith('fe80'));
  if (address === undefined) throw new EngineError('invalid', refusal);
  return { ip: address.address, port };
}

function split(text: string, defaultPort: number): { host: string; port: number } | undefined {
  if (isIP(text) !== 0) return { host: text, port: defaultPort };
  const [, inBrackets, name, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  const host = inBrackets ?? name;
  if (host === undefined) return undefined;
  const port = digits === undefined ? defaultPort : Number(digits);
  return port > 0 && port < 65_535 ? { host, port } : undefined; // the next port is for etcd's peers
}

function onlyAddress(links: Links, ownLinks: (name: string) => boolean): string {
  const candidates = Object.entries(links).flatMap(([name, addresses = []]) =>
    ownLinks(name)
      ? []
      : addresses.filter((one) => !one.internal && one.family === 'IPv4').map(({ address }) => ({ name, address })),
  );
  const [first, second] = candidates;
  const how = 'specify one with --advertise-addr';
  if (first === undefined) {
    throw new EngineError('invalid', `could not find the system's IP address - ${how}`);
  }
  if (second === undefined) return first.address;
  const where =
    first.name === second.name
      ? `addresses on interface ${first.name} (${first.address} and ${second.address})`
      : `addresses on different interfaces (${first.address} on ${first.name} and ${second.address} on ${second.name})`;
  throw new EngineError(
    'invalid',
    `could not choose an IP address to advertise since this system has multiple ${where} - ${how}`,
  );
}
