import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as timeout } from 'node:timers/promises';

import { type ListenAddress, listenAddresses } from '../../config/listen.ts';
import type { Config } from '../../config/schema.ts';
import type { Gateway } from '../../gateway.ts';
import { claimSocketPath } from '../../unix-socket.ts';
import { applyTimeouts, createProxyServer } from '../server.ts';

/** The listening sockets of a gateway. Disposing closes them at once; `drain` waits for requests under way. */
export class Listeners implements AsyncDisposable {
  readonly addresses: string[] = [];
  /** Address for the questions of proxies. */
  decisions: string | undefined;
  readonly #gateway: Gateway;
  readonly #servers: Server[] = [];

  private constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Listens on every configured address. When one fails, the others are closed again. */
  static async open(
    gateway: Gateway,
    { listen, workers, decisions }: Config,
    decisionServer: () => Server,
  ): Promise<Listeners> {
    await using undo = new AsyncDisposableStack();
    const listeners = undo.use(new Listeners(gateway));
    for (const address of listenAddresses(listen)) {
      listeners.addresses.push(await listeners.#listen(createProxyServer(gateway, 'tls' in address), address, workers));
    }
    if (decisions?.listen !== undefined) {
      const [address] = listenAddresses(decisions.listen);
      listeners.decisions = await listeners.#listen(decisionServer(), address!, workers);
    }
    undo.move();
    return listeners;
  }

  async #listen(server: Server, address: ListenAddress, workers: number): Promise<string> {
    if ('path' in address) await claimSocketPath(address.path);
    // Each worker has an accept queue of its own, so connections queued for a worker that dies are reset and do not hang.
    server.listen({ ...address, reusePort: workers > 1 });
    await once(server, 'listening');
    this.#servers.push(server);
    if (!('path' in address)) return urlOf(server.address() as AddressInfo, 'tls' in address);
    chmodSync(address.path, 0o666); // every local user may connect, as with a port
    return `unix:${address.path}`;
  }

  changeTimeouts(config: Config): void {
    for (const server of this.#servers) applyTimeouts(server, config);
  }

  /** Stops accepting connections and waits until all requests are answered, for at most this many milliseconds. */
  async drain(milliseconds: number): Promise<void> {
    this.#gateway.draining = true;
    const closed = Promise.all(this.#servers.map(async (server) => await waitForClose(server)));
    // `close` does not end connections on which nothing was sent yet.
    for (const socket of this.#gateway.connections.keys()) if (socket.bytesRead === 0) socket.destroy();
    for (const socket of this.#gateway.handshakes) if (socket.bytesRead === 0) socket.destroy();
    const giveUp = new AbortController();
    await Promise.race([closed, timeout(milliseconds, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.all(this.#servers.map(async (server) => await waitForClose(server)));
    for (const socket of [...this.#gateway.connections.keys(), ...this.#gateway.handshakes]) socket.destroy();
    await closed;
  }
}

async function waitForClose(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // An error says that it was closed before; its connections may still be open.
  server.close(() => resolve());
  await promise;
}

function urlOf({ address, family, port }: AddressInfo, isTls: boolean): string {
  return `${isTls ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
