import { setTimeout as sleep } from 'node:timers/promises';

import { type Client, connectionTo, type RedisTls } from './connection.ts';
import type { Entry, Link, LinkEvents } from './link.ts';
import { SingleLink } from './single-link.ts';

/** How often sentinels are asked where the master is, and how often while it is away. */
const ASK_TIMEOUT_MS = 1000;
const ASK_AWAY_MS = 100;
const SENTINEL_ANSWER_TIMEOUT_MS = 1000;

type Subscription = Readonly<{ channel: string; listener: (message: string) => void }>;

/** The server that sentinels name as the master, whichever it is at the time. */
export class SentinelLink implements Link {
  readonly #events: LinkEvents;
  readonly #master: URL;
  readonly #tls: RedisTls | undefined;
  readonly #sentinels: readonly Client[];
  readonly #subscriptions: Subscription[] = [];
  readonly #first = Promise.withResolvers<void>();
  #link: SingleLink | undefined;
  #address = '';
  #closed = false;
  /** Ends the pause before sentinels are asked again. */
  #hurry = new AbortController();

  /** `master`: redis://user:password@NAME, with the name that sentinels know it by. */
  constructor(master: string, sentinels: readonly string[], events: LinkEvents, tls?: RedisTls) {
    this.#tls = tls;
    this.#events = events;
    this.#master = new URL(master);
    this.#sentinels = sentinels.map((url) => connectionTo(url, tls));
    // One that is away is no trouble while another one answers.
    for (const sentinel of this.#sentinels) sentinel.on('error', () => undefined);
  }

  async connect(): Promise<void> {
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => undefined);
    void this.#follow();
    await this.#first.promise;
  }

  isThere(): boolean {
    return this.#link?.isThere() === true;
  }

  async send<T>(key: string, command: readonly string[]): Promise<T> {
    if (this.#link === undefined) throw new Error('no sentinel knows a master');
    try {
      return await this.#link.send<T>(key, command);
    } catch (error) {
      // It lost the role of master, or its connection has ended: another server may be master by now.
      this.#hurry.abort();
      throw error;
    }
  }

  noAnswer(): void {
    this.#link?.noAnswer();
    this.#hurry.abort();
  }

  async *entries(pattern: string): AsyncGenerator<readonly Entry[]> {
    if (this.#link !== undefined) yield* this.#link.entries(pattern);
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#link?.publish(channel, message);
  }

  subscribe(channel: string, listener: (message: string) => void): void {
    this.#subscriptions.push({ channel, listener });
    this.#link?.subscribe(channel, listener);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#hurry.abort();
    this.#link?.[Symbol.dispose]();
    for (const sentinel of this.#sentinels) if (sentinel.isOpen) sentinel.destroy();
    this.#first.resolve();
  }

  /** Asks the sentinels again and again, and goes where they say. */
  async #follow(): Promise<void> {
    while (!this.#closed) {
      const address = await this.#named();
      if (this.#closed) return;
      if (address !== undefined && address !== this.#address) this.#goTo(address);
      this.#hurry = new AbortController();
      const pause = this.isThere() ? ASK_TIMEOUT_MS : ASK_AWAY_MS;
      await sleep(pause, undefined, { signal: this.#hurry.signal, ref: false }).catch(() => undefined);
    }
  }

  #goTo(address: string): void {
    this.#link?.[Symbol.dispose]();
    this.#address = address;
    const url = new URL(this.#master);
    url.host = address;
    const link = new SingleLink(url.href, this.#events, this.#tls);
    this.#link = link;
    for (const { channel, listener } of this.#subscriptions) link.subscribe(channel, listener);
    link.connect().then(
      () => this.#first.resolve(),
      (error: unknown) => {
        if (this.#link === link && !this.#closed) this.#events.troubled(error);
      },
    );
  }

  /** The master's address by the first sentinel that answers. */
  async #named(): Promise<string | undefined> {
    for (const sentinel of this.#sentinels) {
      if (!sentinel.isReady) continue;
      const name = decodeURIComponent(this.#master.hostname);
      const asked = sentinel.sendCommand<Buffer[] | null>(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]);
      const late = sleep(SENTINEL_ANSWER_TIMEOUT_MS, undefined, { ref: false });
      const found = await Promise.race([asked, late]).catch(() => undefined);
      const [host, port] = found ?? [];
      if (host !== undefined && port !== undefined) return addressOf(host.toString(), port.toString());
    }
    return undefined;
  }
}

function addressOf(host: string, port: string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
