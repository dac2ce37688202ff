import { setTimeout as sleep } from 'node:timers/promises';

import { createCluster } from '@redis/client';

import { COMMANDS, CONNECT_TIMEOUT_MS, eachSecond, entriesOf, type RedisTls, socketTo } from './connection.ts';
import type { Entry, Link, LinkEvents } from './link.ts';

const RETRY_DELAY_MS = 1000;
/** A server that is away may have been replaced by another one, which only the others know. */
const ASK_OTHERS_MS = 500;

/** The servers of a cluster. Each caller lies in the slot that its name gives; a command names one caller. */
export class ClusterLink implements Link {
  readonly #events: LinkEvents;
  readonly #cluster: ReturnType<typeof clusterOf>;
  readonly #questions: Disposable;
  /** Addresses of servers that missed a time limit and have not answered since. */
  readonly #silent = new Set<string>();
  #closed = false;

  constructor(urls: readonly string[], events: LinkEvents, tls: RedisTls = {}) {
    this.#events = events;
    this.#cluster = clusterOf(urls, tls);
    for (const event of ['error', 'node-error']) {
      this.#cluster.on(event, (error: unknown) => this.#events.troubled(error));
    }
    this.#questions = eachSecond(() => this.#askAll());
  }

  async connect(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#cluster.connect();
        return this.#events.heard();
      } catch (error) {
        this.#events.troubled(error);
        await sleep(RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
  }

  isThere(key: string): boolean {
    const master = this.#masterOf(key);
    return master !== undefined && master.client?.isReady === true && !this.#silent.has(master.address);
  }

  async send<T>(key: string, command: readonly string[]): Promise<T> {
    const reply = await this.#cluster.sendCommand<T>(key, false, [...command], COMMANDS);
    this.#silent.delete(this.#masterOf(key)?.address ?? '');
    this.#events.heard();
    return reply;
  }

  noAnswer(key: string): void {
    this.#silent.add(this.#masterOf(key)?.address ?? '');
  }

  async *entries(pattern: string): AsyncGenerator<readonly Entry[]> {
    for (const master of this.#cluster.masters) {
      const client = await this.#cluster.nodeClient(master);
      yield* entriesOf(client.withTypeMapping(COMMANDS.typeMapping), pattern);
    }
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#cluster.publish(channel, message);
  }

  subscribe(channel: string, listener: (message: string) => void): void {
    const subscribe = async (): Promise<void> => {
      while (!this.#cluster.isReady && !this.#closed) await sleep(RETRY_DELAY_MS / 10, undefined, { ref: false });
      if (!this.#closed) await this.#cluster.subscribe(channel, listener);
    };
    subscribe().catch((error: unknown) => {
      if (!this.#closed) this.#events.troubled(error);
    });
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#questions[Symbol.dispose]();
    if (this.#cluster.isOpen) this.#cluster.destroy();
  }

  #masterOf(key: string) {
    return this.#cluster.isReady ? this.#cluster.slots[slotOf(key)]?.master : undefined;
  }

  #askAll(): void {
    if (!this.#cluster.isReady) return;
    for (const { address, client } of this.#cluster.masters)
      if (client?.isReady === true) void this.#ask(address, client);
  }

  async #ask(address: string, server: { ping(): Promise<unknown> }): Promise<void> {
    try {
      await server.ping();
      if (this.#silent.delete(address)) this.#events.heard();
    } catch (error) {
      this.#events.troubled(error);
    }
  }
}

function clusterOf(urls: readonly string[], tls: RedisTls) {
  const { username, password, href } = new URL(urls[0] ?? 'redis://127.0.0.1');
  const account = {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  };
  return createCluster({
    rootNodes: urls.map((url) => ({
      url,
      socket: { ...socketTo(url, tls), connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: false as const },
    })),
    defaults: { ...account, disableOfflineQueue: true, socket: socketTo(href, tls) },
    topologyRefreshOnReconnectionAttemptStrategy: ASK_OTHERS_MS,
    commandOptions: COMMANDS,
  });
}

const SLOTS = 16_384;

/** CRC-16 (XMODEM) of what stands in the first braces, or of all. */
export function slotOf(key: string): number {
  const from = key.indexOf('{');
  const to = from < 0 ? -1 : key.indexOf('}', from + 1);
  let crc = 0;
  for (const byte of Buffer.from(to > from + 1 ? key.slice(from + 1, to) : key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x80_00) === 0 ? crc << 1 : (crc << 1) ^ 0x10_21;
    crc &= 0xff_ff;
  }
  return crc % SLOTS;
}
