import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { dirname } from 'node:path';

import type { Config } from '../config/config.ts';
import { hasCode } from '../lib/errors.ts';
import { keepEarlyBytes } from './early-bytes.ts';

const OPTIONS = {
  // A hijacking POST is an ordinary request for the routes; they take the socket over themselves.
  shouldUpgradeCallback: () => false,
  keepAliveTimeout: 60_000,
  requestTimeout: 0, // archives may take as long as they take
};

/** Opens every host of the configuration; none is left open when one fails. */
export async function openListeners(config: Config, listener: RequestListener): Promise<AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  // A socket's file last: who waits for it finds all of them open.
  const sockets = config.hosts.filter((host) => host.startsWith('unix://'));
  const others = config.hosts.filter((host) => !host.startsWith('unix://'));
  for (const host of [...others, ...sockets]) undo.use(await openHost(config, host, listener));
  return undo.move();
}

async function openHost(config: Config, host: string, listener: RequestListener): Promise<AsyncDisposable> {
  if (host.startsWith('unix://')) return await openUnix(config, host.slice('unix://'.length), listener);
  const match = /^tcp:\/\/(\[[^\]]+\]|[^:/]*):(\d+)$/.exec(host);
  if (match === null) throw new Error(`invalid host "${host}": expected unix:///path or tcp://address:port`);
  const address = match[1]!.replace(/^\[(.*)\]$/, '$1') || '0.0.0.0';
  if (!config.tls && !config.insecureTcp && !/^(127\.|::1$|localhost$)/.test(address)) {
    throw new Error(
      `${host}: TCP without TLS gives root to everyone who reaches it; use --tlsverify, a loopback address, or --insecure-tcp`,
    );
  }
  const server = config.tls ? createTlsServer({ ...OPTIONS, ...certificates(config) }) : createServer(OPTIONS);
  server.on('request', keepEarlyBytes(server, listener));
  server.listen({ host: address, port: Number(match[2]) });
  await once(server, 'listening');
  return closing(server);
}

async function openUnix(config: Config, path: string, listener: RequestListener): Promise<AsyncDisposable> {
  mkdirSync(dirname(path), { recursive: true });
  const gid = config.group === '' ? undefined : groupId(config.group);
  if (await answers(path)) throw new Error(`unix://${path}: another daemon listens there`);
  rmSync(path, { force: true });
  const server = createServer(OPTIONS);
  server.on('request', keepEarlyBytes(server, listener));
  server.listen(path);
  await once(server, 'listening');
  chmodSync(path, 0o660);
  if (gid !== undefined) chownSync(path, 0, gid);
  return closing(server, () => rmSync(path, { force: true }));
}

function closing(server: Server, after: () => void = () => undefined): AsyncDisposable {
  // The writable side stays open when a client has sent its last byte.
  Object.assign(server, { httpAllowHalfOpen: true });
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      after();
      await closed;
    },
  };
}

/** Whether somebody accepts connections on a socket that is there. */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED') || hasCode(error, 'ENOTSOCK')) return false;
    throw error;
  } finally {
    socket.destroy();
  }
}

function certificates({ tlscacert, tlscert, tlskey, tlsverify }: Config): object {
  if (tlscert === '' || tlskey === '') throw new Error('TLS needs --tlscert and --tlskey');
  if (tlsverify && tlscacert === '') throw new Error('--tlsverify needs --tlscacert');
  return {
    cert: readFileSync(tlscert),
    key: readFileSync(tlskey),
    ...(tlsverify && { ca: readFileSync(tlscacert), requestCert: true, rejectUnauthorized: true }),
  };
}

function groupId(group: string): number {
  if (/^\d+$/.test(group)) return Number(group);
  const line = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${group}:`));
  if (line === undefined) throw new Error(`group ${group} does not exist`);
  return Number(line.split(':')[2]);
}
