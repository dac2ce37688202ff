import { isIP } from 'node:net';

export type ListenAddress = Readonly<{ path: string }> | Readonly<{ host: string; port: number; tls?: true }>;

/**
 * `unix:/path`, `address:port`, `[::1]:8080`, `:8080` (all addresses) or a port alone (loopback); `tls:` before one of
 * these but the first. Undefined: neither.
 */
export function listenAddress(text: string): ListenAddress | undefined {
  if (text.startsWith('unix:')) return text.length > 5 ? { path: text.slice(5) } : undefined;
  if (text.startsWith('tls:')) {
    const address = listenAddress(text.slice('tls:'.length));
    return address === undefined || 'path' in address || address.tls === true ? undefined : { ...address, tls: true };
  }
  const match = /^(?:(\[[^\]]+\]|[^:[\]]*):)?(\d{1,5})$/.exec(text);
  if (match === null || Number(match[2]) > 65_535) return undefined;
  const written = match[1];
  const host = written === undefined ? '127.0.0.1' : written.replace(/^\[(.*)\]$/, '$1');
  if (written?.startsWith('[') === true && isIP(host) !== 6) return undefined;
  return { host: host === '' ? '::' : host, port: Number(match[2]) };
}

export function listenAddresses(listen: string | readonly string[]): ListenAddress[] {
  return [listen].flat().map((text) => {
    const address = listenAddress(text);
    if (address === undefined) throw new RangeError(`listen: ${text} is neither address:port nor unix:/path`);
    return address;
  });
}
