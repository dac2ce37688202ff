import { EngineError } from '../../lib/errors.ts';

/** An address such as `tcp://host:514` or `unix:///run/log.sock`, as written. */
type TransportUrl = Readonly<{ scheme: string; host: string; path: string }>;

/** Undefined for a transport that docker does not know. */
export function transportUrl(address: string): TransportUrl | undefined {
  const match = /^(?<scheme>tcp|udp|unix|unixgram|tcp\+tls):\/\/(?:[^@/]*@)?(?<host>[^/?#]*)(?<path>[^?#]*)/.exec(
    address,
  );
  if (match === null) return undefined;
  const { scheme = '', host = '', path = '' } = match.groups!;
  const port = /:([^:\]]*)$/.exec(host)?.[1] ?? '';
  if (!/^\d*$/.test(port))
    throw new EngineError('invalid', `parse ${JSON.stringify(address)}: invalid port ":${port}" after host`);
  return { scheme, host, path };
}

export type HostAndPort = Readonly<{ host: string; port: number }>;

/** Splits `host:port` and `[::1]:port`, with Go's words for any other form; undefined: the port is missing. */
export function hostAndPort(text: string): HostAndPort | undefined {
  const match = /^(?:\[(?<six>[^\]]*)\]|(?<plain>[^:[\]]*)):(?<port>[^:]*)$/.exec(text);
  if (match !== null) {
    const { six, plain = '', port = '' } = match.groups!;
    return { host: six ?? plain, port: portOf(text, port) };
  }
  if (/^(\[[^\]]*\]|[^:[\]]*)$/.test(text)) return undefined;
  throw new EngineError('invalid', `address ${text}: too many colons in address`);
}

export function withoutBrackets(host: string): string {
  return /^\[(.*)\]$/.exec(host)?.[1] ?? host;
}

function portOf(text: string, port: string): number {
  if (Number(port) > 65_535) throw new EngineError('invalid', `address ${text}: invalid port`);
  return Number(port);
}
