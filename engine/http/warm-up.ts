import type { RequestListener, Server } from 'node:http';
import { Socket } from 'node:net';

import { connectedSockets } from '../host/spawn.ts';
import { settlesWithin, type Clock } from '../lib/clock.ts';
import { createServer } from '../lib/node-http.ts';
import { serve } from './listening/connections.ts';
import { SERVER_OPTIONS } from './listening/listeners.ts';

const ROUNDS = 24;
/** A start does not wait longer for it, whatever the answers are. */
const MOST_SECONDS = 0.25;

/**
 * Requests these paths as a client would, until Node has compiled the code behind them: the first dozen requests to a
 * fresh daemon would take three times as long as later ones.
 */
export async function warmUp(listener: RequestListener, paths: readonly string[], clock: Clock): Promise<void> {
  const server = createServer(SERVER_OPTIONS);
  const connections = serve(server, listener);
  const over = new AbortController();
  const rounds = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS && !over.signal.aborted; round += 1) await ask(server, paths);
  };
  await settlesWithin(rounds(), MOST_SECONDS, clock);
  over.abort();
  for (const socket of connections) socket.destroy();
}

/** All of them on one connection, which ends with the last answer. */
async function ask(server: Server, paths: readonly string[]): Promise<void> {
  const [client, peer] = connectedSockets().map((fd) => new Socket({ fd, allowHalfOpen: true })) as [Socket, Socket];
  server.emit('connection', peer);
  const { promise, resolve } = Promise.withResolvers<void>();
  client.on('close', resolve).on('error', resolve); // an error: it was cut off, because the time is over
  client.end(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''));
  client.resume();
  await promise;
}
