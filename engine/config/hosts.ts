import { isIP } from 'node:net';

import { EngineError } from '../lib/errors.ts';
import { MAX_SOCKET_PATH_BYTES } from '../lib/failure-message.ts';

/** An address on which the daemon listens. */
export type Host = Readonly<
  { kind: 'unix'; path: string } | { kind: 'tcp'; address: string; port: number } | { kind: 'passed' }
>;

const PLAIN_PORT = 2375;
const TLS_PORT = 2376;

/**
 * Reads `unix:///path`, `tcp://address:port` and `fd://`, which are the sockets that systemd passes, as dockerd does: the
 * default address is loopback, the default port is docker's, and the kernel chooses port 0. Throws `invalid`.
 */
export function parseHost(text: string, tls: boolean): Host {
  if (text === 'fd://') return { kind: 'passed' };
  const [, path] = /^unix:\/\/(\/.+)$/s.exec(text) ?? [];
  if (path !== undefined) {
    if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
      throw new EngineError('invalid', `${text}: the path of a socket has at most ${MAX_SOCKET_PATH_BYTES} bytes`);
    }
    return { kind: 'unix', path };
  }
  const match = /^tcp:\/\/(\[[0-9a-f:.%]+\]|[^:/[\]]*)(?::(\d{1,5}))?\/?$/i.exec(text);
  const port = match?.[2] === undefined ? (tls ? TLS_PORT : PLAIN_PORT) : Number(match[2]);
  if (match === null || port > 65_535) {
    throw new EngineError('invalid', `"${text}" is not a host; expected unix:///path or tcp://address:port`);
  }
  const address = match[1]!.replace(/^\[(.*)\]$/, '$1');
  return { kind: 'tcp', address: address === '' || address === 'localhost' ? '127.0.0.1' : address, port };
}

/** Reads `address:port`, of which the address is loopback when it is left out. Throws `invalid`. */
export function parseMetricsAddress(text: string): { host: string; port: number } {
  const wrong = new EngineError('invalid', `"${text}" is no address for metrics; expected address:port`);
  if (!/:\d{1,5}$/.test(text) || text.includes('/')) throw wrong;
  const host = parseHost(`tcp://${text}`, false);
  if (host.kind !== 'tcp') throw wrong;
  return { host: host.address, port: host.port };
}

/**
 * Reads the address of the page, `127.0.0.1:port` or `[::1]:port`; a port alone is one of 127.0.0.1. Where clients show a
 * certificate (`tlsverify`), other addresses too. Throws `invalid`.
 */
export function parsePageAddress(text: string, tlsverify: boolean): { host: string; port: number } {
  const host = /^\d{1,5}$/.test(text) ? parseHost(`tcp://:${text}`, false) : undefined;
  const found = host ?? (/:\d{1,5}$/.test(text) && !text.includes('/') ? parseHost(`tcp://${text}`, false) : undefined);
  if (
    found?.kind === 'tcp' &&
    (['127.0.0.1', '::1'].includes(found.address) || (tlsverify && isIP(found.address) > 0))
  ) {
    return { host: found.address, port: found.port };
  }
  const expected = tlsverify ? 'ADDRESS:port' : '127.0.0.1:port or [::1]:port; with --tlsverify other addresses too';
  throw new EngineError('invalid', `"${text}" is no address for the page; expected ${expected}`);
}

/** Whether only this machine can reach the address. */
export function isLoopback(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
}
