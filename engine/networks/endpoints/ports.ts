import { Type, type Static } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';

/** Protocols that can be published. */
export type Protocol = 'tcp' | 'udp';
/** A port that an image or a container names. */
export type ExposedPort = Readonly<{ containerPort: number; protocol: Protocol | 'sctp' }>;

export const PublishedPort = Type.Object({
  containerPort: Type.Integer(),
  protocol: Type.Union([Type.Literal('tcp'), Type.Literal('udp')]),
  hostIp: Type.String(),
  /** 0: reached at the container's own address alone. */
  hostPort: Type.Integer(),
  /** Also reached at the container's own address, from interfaces that the network trusts. */
  isDirect: Type.Optional(Type.Boolean()),
});
export type PublishedPort = Readonly<Static<typeof PublishedPort>>;

/** Whether a port of the machine leads to it. */
export function isOnHost({ hostPort }: PublishedPort): boolean {
  return hostPort !== 0;
}

/** HostConfig.PortBindings on the wire, with ranges such as `8000-8010`, empty strings and nulls. */
export type PortBindings = Readonly<
  Record<string, readonly { HostIp?: string | null; HostPort?: string | null }[] | null>
>;

/** A port to publish, on a host port from `first` to `last`; without them, on any of the ephemeral range. */
export type WantedPort = Readonly<{
  containerPort: number;
  protocol: Protocol;
  /** Empty: the address that the network publishes on. */
  hostIp: string;
  range?: Readonly<{ first: number; last: number }>;
}>;

/** Reads and checks all bindings, including `exposed` ports if all of them are to be published. */
export function wantedPorts(bindings: PortBindings, publishAll: boolean, exposed: readonly string[]): WantedPort[] {
  const wanted = Object.entries(bindings).flatMap(([key, hosts]) => {
    const port = publishable(parsePort(key));
    return (hosts ?? []).map((host) => ({
      ...port,
      hostIp: parseHostIp(host.HostIp ?? ''),
      range: parseHostPort(host.HostPort ?? ''),
    }));
  });
  if (!publishAll) return wanted;
  const bound = new Set(wanted.map(({ containerPort, protocol }) => `${containerPort}/${protocol}`));
  const more = exposed
    .map((key) => publishable(parsePort(key)))
    .filter((port) => !bound.has(`${port.containerPort}/${port.protocol}`));
  return [...wanted, ...more.map((port) => ({ ...port, hostIp: '' }))];
}

export const ANY = '0.0.0.0';
/** Any address of IPv6. */
export const ANY_SIX = '::';
/** Out of it rules lead nothing: the kernel has no route_localnet for IPv6. */
export const LOOPBACK_SIX = '::1';

/** Reads `80/tcp`; no protocol means TCP. */
export function parsePort(key: string): ExposedPort {
  const [number = '', protocol = 'tcp', ...rest] = key.split('/');
  if (rest.length > 0 || !isPort(number) || number === '0') throw new EngineError('invalid', `invalid port: "${key}"`);
  if (protocol !== 'tcp' && protocol !== 'udp' && protocol !== 'sctp') {
    throw new EngineError('invalid', `invalid port "${key}": the protocol is not tcp, udp or sctp`);
  }
  return { containerPort: Number(number), protocol };
}

/** Throws `invalid`: ports of SCTP are named by images, but not published. */
function publishable({ containerPort, protocol }: ExposedPort): { containerPort: number; protocol: Protocol } {
  if (protocol !== 'sctp') return { containerPort, protocol };
  throw new EngineError('invalid', `port ${containerPort}/sctp cannot be published: the protocol is not tcp or udp`);
}

function parseHostIp(text: string): string {
  if (text === '') return text;
  const ip = parseIp(text);
  if (ip === undefined)
    throw new EngineError('invalid', `invalid host IP of a published port: "${text}" is no address`);
  return ipText(ip);
}

function parseHostPort(text: string): WantedPort['range'] {
  if (text === '' || text === '0') return undefined;
  const [first = '', last = first, ...rest] = text.split('-');
  if (rest.length > 0 || !isPort(first) || !isPort(last) || Number(first) > Number(last) || Number(first) === 0) {
    throw new EngineError('invalid', `invalid host port: "${text}"`);
  }
  return { first: Number(first), last: Number(last) };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65535;
}
