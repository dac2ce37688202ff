import { type Client, connectionTo, eachSecond, entriesOf, type RedisTls } from './connection.ts';
import type { Entry, Link, LinkEvents } from './link.ts';

/** One server. */
export class SingleLink implements Link {
  readonly #url: string;
  readonly #tls: RedisTls | undefined;
  readonly #events: LinkEvents;
  readonly #client: Client;
  readonly #questions: Disposable;
  readonly #subscribers: Client[] = [];
  /** An answer was late, and nothing has come since. */
  #silent = false;

  constructor(url: string, events: LinkEvents, tls?: RedisTls) {
    this.#url = url;
    this.#tls = tls;
    this.#events = events;
    this.#client = this.#open();
    this.#client.on('ready', () => this.#heard());
    this.#questions = eachSecond(() => {
      for (const client of [this.#client, ...this.#subscribers]) {
        if (!client.isReady) continue;
        const answered = client === this.#client ? () => this.#heard() : () => undefined;
        client.ping().then(answered, (error: unknown) => this.#events.troubled(error));
      }
    });
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  isThere(): boolean {
    return this.#client.isReady && !this.#silent;
  }

  async send<T>(_key: string, command: readonly string[]): Promise<T> {
    const reply = await this.#client.sendCommand<T>(command);
    this.#heard();
    return reply;
  }

  noAnswer(): void {
    this.#silent = true;
  }

  entries(pattern: string): AsyncGenerator<readonly Entry[]> {
    return entriesOf(this.#client, pattern);
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#client.publish(channel, message);
  }

  subscribe(channel: string, listener: (message: string) => void): void {
    const subscriber = this.#open();
    this.#subscribers.push(subscriber);
    const subscribe = async (): Promise<void> => {
      await subscriber.connect();
      await subscriber.subscribe(channel, listener);
    };
    subscribe().catch((error: unknown) => {
      if (subscriber.isOpen) this.#events.troubled(error); // not when it was closed before it connected
    });
  }

  [Symbol.dispose](): void {
    this.#questions[Symbol.dispose]();
    for (const client of [this.#client, ...this.#subscribers]) if (client.isOpen) client.destroy();
  }

  #open(): Client {
    const client = connectionTo(this.#url, this.#tls);
    client.on('error', (error) => this.#events.troubled(error));
    return client;
  }

  #heard(): void {
    this.#silent = false;
    this.#events.heard();
  }
}
