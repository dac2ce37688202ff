import type { RequestListener } from 'node:http';

import type { Logger } from 'pino';

import type { Config } from '../config/daemon-config.ts';
import { isLoopback, parsePageAddress } from '../config/hosts.ts';
import type { UsageHistory } from '../containers/stats/usage-history.ts';
import type { PendingRequests } from '../http/listening/pending-requests.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import type { PageInvitation } from './schema.ts';
import type { PageServer } from './server.ts';
import { PageSessions } from './sessions.ts';

type Needs = Readonly<{ clock: Clock; config: Config; log: Logger; usageHistory: UsageHistory }>;
type Api = Readonly<{ listener: RequestListener; pending: PendingRequests }>;

const ANY_PORT = { host: '127.0.0.1', port: 0 };

/** The page in a browser: off until somebody is invited, or the settings name an address. */
export class Page {
  readonly #log: Logger;
  readonly #usageHistory: UsageHistory;
  readonly #setting: Readonly<{ host: string; port: number }> | undefined;
  /** Served over TLS: its address is not one of this machine alone. */
  readonly #tls: Config | undefined;
  readonly #isReadOnly: boolean;
  readonly #sessions: PageSessions;
  #api: Api | undefined;
  #server: Promise<PageServer> | undefined;

  constructor({ clock, config, log, usageHistory }: Needs) {
    this.#log = log;
    this.#usageHistory = usageHistory;
    this.#setting = config.page === '' ? undefined : parsePageAddress(config.page, config.tlsverify);
    this.#tls = this.#setting === undefined || isLoopback(this.#setting.host) ? undefined : config;
    this.#isReadOnly = config.pageReadOnly;
    this.#sessions = new PageSessions(clock, config.execRoot);
  }

  /**
   * The API is ready, until the result is disposed of. Listens at once where the settings say so, or where the last daemon
   * has left sessions.
   */
  async begin(api: Api): Promise<AsyncDisposable> {
    this.#api = api;
    if (this.#setting !== undefined) await this.#open();
    else if (this.#lastAddress !== undefined) await this.#openAgain();
    return {
      [Symbol.asyncDispose]: async () => {
        this.#api = undefined;
        await this.#end();
      },
    };
  }

  /** A URL that opens the page once. */
  async invite({ readOnly }: { readOnly: boolean }): Promise<PageInvitation> {
    const { origin } = await this.#open();
    const isReadOnly = readOnly || this.#isReadOnly;
    const token = this.#sessions.token(isReadOnly);
    return { URL: `${origin}/?token=${token}`, ReadOnly: isReadOnly };
  }

  /** Ends all sessions; where no setting names an address, the listener too. */
  async close(): Promise<void> {
    this.#sessions.clear();
    const server = await this.#server;
    server?.disconnect();
    if (this.#setting === undefined) await this.#end();
  }

  /** Address of the last daemon's sessions, if it is loopback: others are never served without TLS. */
  get #lastAddress(): PageSessions['lastAddress'] {
    const last = this.#sessions.lastAddress;
    return last !== undefined && isLoopback(last.host) ? last : undefined;
  }

  async #open(): Promise<PageServer> {
    this.#server ??= this.#listen();
    try {
      return await this.#server;
    } catch (error) {
      this.#server = undefined;
      throw error;
    }
  }

  /** Another program that has the port now must not get the cookies of the sessions: they end. */
  async #openAgain(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      this.#sessions.clear();
      this.#log.warn({ err: error }, 'the page of the last daemon is not served again');
    }
  }

  async #listen(): Promise<PageServer> {
    if (this.#api === undefined) throw new EngineError('unavailable', 'the page is not served: the daemon is ending');
    const { servePage } = await import('./server.ts'); // most daemons never need it
    const needs = { ...this.#api, sessions: this.#sessions, isReadOnly: this.#isReadOnly, tls: this.#tls };
    await using undo = new AsyncDisposableStack();
    undo.use(this.#usageHistory.record());
    const server = undo.use(await servePage(this.#setting ?? this.#lastAddress ?? ANY_PORT, needs));
    this.#sessions.servedAt(server);
    this.#log.info({ page: server.origin }, 'the page is served');
    const parts = undo.move();
    return { ...server, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
  }

  async #end(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await (await server)?.[Symbol.asyncDispose]();
  }
}
