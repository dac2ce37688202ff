import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { CallerState, LimitedCaller, LimitRules, RefusalNote } from '@gantry/limiter/types.ts';

import { type NearestCaller, nearestOf } from '../admin/nearest-callers.ts';
import { type TopCaller, topOf } from '../admin/top-callers.ts';
import { type ListenAddress, listenAddresses } from '../config/listen.ts';
import { overriddenRules, rulesFrom } from '../config/rules.ts';
import type { Config } from '../config/schema.ts';
import type { DecisionEnd } from '../gateway.ts';
import type { GatewayLog } from '../log.ts';
import { type Counts, sumOf } from '../metrics.ts';
import type { Operator, Service } from '../operator.ts';
import { type LocalStore, openLocalStore } from '../store.ts';
import { Bans } from './bans.ts';
import type { Questions } from './batch.ts';
import { Channel, ChannelClosed } from './channel.ts';
import { StoreHost } from './store-host.ts';
import { watchWorker } from './watchdog.ts';

type Member = { worker: Worker; channel: Channel };

/** A worker that ends again and again is started again at most this often. */
const RESTART_PAUSE_MS = 1000;
/** Time of a worker beyond that for draining. */
const EXIT_GRACE_MS = 2000;

/**
 * Several processes on one port. The counts of the memory and SQLite stores live in this process, and workers ask for
 * decisions; with Redis every worker asks the server itself.
 */
export async function startWorkers(config: Config, log: GatewayLog): Promise<Service> {
  const workers = new Workers(config, log);
  try {
    const addresses = await workers.start();
    return {
      addresses,
      operator: workers,
      reload: async (next) => await workers.reload(next),
      [Symbol.asyncDispose]: async () => await workers.end(),
    };
  } catch (error) {
    await workers.end();
    throw error;
  }
}

class Workers implements Operator {
  readonly #log: GatewayLog;
  readonly #members = new Set<Member>();
  readonly #store: LocalStore | undefined;
  #config: Config;
  #rules: LimitRules;
  #overrides: ReadonlyMap<string, LimitRules>;
  readonly #bans = new Bans();
  /** Addresses of the first worker; where the kernel has chosen a port, the others must have the same. */
  #listen: readonly string[] | undefined;
  #ending = false;

  constructor(config: Config, log: GatewayLog) {
    this.#config = config;
    this.#log = log;
    this.#rules = rulesFrom(config);
    this.#overrides = overriddenRules(config);
    if (config.store.kind !== 'redis') {
      this.#store = openLocalStore(config, log);
    }
    cluster.setupPrimary({ exec: join(import.meta.dirname, 'worker.ts'), args: [] });
  }

  async start(): Promise<readonly string[]> {
    const { listen, workers } = this.#config;
    for (const address of listenAddresses(listen)) await refuseTaken(address);
    const addresses = await this.#fork();
    this.#listen = addresses.map((address) => address.replace(/^http:\/\//, '').replace(/^https:\/\//, 'tls:'));
    await Promise.all(Array.from({ length: workers - 1 }, async () => await this.#fork()));
    return addresses;
  }

  async reload(config: Config): Promise<void> {
    const before = this.#config;
    this.#put(config);
    try {
      await this.#ofAll('reload', config);
    } catch (error) {
      this.#put(before);
      await this.#ofAll('reload', before);
      throw error;
    }
  }

  async end(): Promise<void> {
    this.#ending = true;
    const { drainMs } = this.#config.timeouts;
    await Promise.all([...this.#members].map(async ({ worker, channel }) => await endWorker(worker, channel, drainMs)));
    await this.#store?.[Symbol.asyncDispose]();
  }

  async limited(): Promise<LimitedCaller[]> {
    const lists = (await this.#ofAll('limited', undefined)) as LimitedCaller[][];
    const byKey = new Map<string, LimitedCaller>();
    for (const one of lists.flat()) {
      const other = byKey.get(one.key);
      if (other === undefined) byKey.set(one.key, one);
      else {
        const later = one.untilSeconds > other.untilSeconds ? one : other;
        byKey.set(one.key, { ...later, refused: one.refused + other.refused });
      }
    }
    return [...byKey.values()];
  }

  async caller(key: string): Promise<CallerState> {
    return (await this.#ofOne('caller', key)) as CallerState;
  }

  async limitsOf(key: string): Promise<number[]> {
    return ((await this.#ofAll('limitsOf', key)) as number[][]).flat();
  }

  async content(key: string, count: number): Promise<void> {
    if (this.#store === undefined) await this.#ofOne('content', { key, count });
    else this.#store.chargeContent(key, count, this.#rules);
  }

  async forgive(key: string): Promise<void> {
    this.#bans.forget(key);
    this.#store?.forget(key);
    // With Redis the first worker forgets for all; each worker remembers whom it has refused.
    await this.#ofAll('forgive', key);
  }

  async counts(): Promise<Counts> {
    return sumOf((await this.#ofAll('counts', undefined)) as Counts[]);
  }

  async top(): Promise<TopCaller[]> {
    return topOf(((await this.#ofAll('top', undefined)) as TopCaller[][]).flat());
  }

  async nearest(): Promise<NearestCaller[]> {
    return nearestOf(((await this.#ofAll('nearest', undefined)) as NearestCaller[][]).flat());
  }

  #put(config: Config): void {
    this.#config = config;
    this.#rules = rulesFrom(config);
    this.#overrides = overriddenRules(config);
    this.#log.change(config.log);
  }

  /** A worker that ends meanwhile is left out. */
  async #ofAll(name: string, argument: unknown): Promise<unknown[]> {
    const answers = await Promise.allSettled(
      Array.from(this.#members, async ({ channel }) => await channel.call(name, argument)),
    );
    return answers.flatMap((answer) => {
      if (answer.status === 'fulfilled') return [answer.value];
      if (answer.reason instanceof ChannelClosed) return [];
      throw answer.reason;
    });
  }

  /** All workers count the refusals that may lead to a ban. */
  #refused(note: RefusalNote, by: Worker): void {
    this.#bans.note(note);
    this.#tellOthers(by, 'refused', note);
  }

  #tellOthers(by: Worker, name: string, argument: unknown): void {
    for (const { worker, channel } of this.#members) {
      if (worker !== by && worker.isConnected()) channel.notify(name, argument);
    }
  }

  async #ofOne(name: string, argument: unknown): Promise<unknown> {
    const [member] = this.#members;
    if (member === undefined) throw new Error('no worker is running');
    return await member.channel.call(name, argument);
  }

  /** Starts a worker, and another one in its place whenever it ends. Returns the addresses that it listens on. */
  async #fork(): Promise<readonly string[]> {
    const worker = cluster.fork();
    const host =
      this.#store === undefined
        ? undefined
        : new StoreHost(this.#store, (key) => this.#overrides.get(key) ?? this.#rules);
    const channel: Channel = new Channel(worker, {
      batch: (batch: Questions) => {
        const verdicts = host?.batch(batch) ?? [];
        if (batch.asks.length > 0 && worker.isConnected()) channel.notify('verdicts', verdicts);
      },
      refused: (note: RefusalNote) => this.#refused(note, worker),
      ended: (end: DecisionEnd) => this.#tellOthers(worker, 'ended', end),
      peek: (key: string) => this.#store?.peek(key),
      scan: async () => (this.#store === undefined ? [] : await Array.fromAsync(this.#store.scan())),
      forget: (key: string) => this.#store?.forget(key),
      content: ({ key, count }: { key: string; count: number }) => this.#store?.chargeContent(key, count, this.#rules),
    });
    const member = { worker, channel };
    let started = false;
    let watchdog: Disposable | undefined;
    worker.on('error', (error) => this.#log.bug(error));
    worker.once('exit', (code, signal) => {
      watchdog?.[Symbol.dispose]();
      host?.releaseAll();
      channel.closed('the worker has ended');
      this.#members.delete(member);
      if (this.#ending || !started) return;
      this.#log.logger.error({ code, signal }, 'a worker has ended; another one takes its place');
      void this.#replace();
    });
    let config = this.#config;
    const listen = this.#listen ?? config.listen;
    const addresses = (await channel.call('start', { ...config, listen })) as readonly string[];
    while (config !== this.#config) {
      config = this.#config;
      await channel.call('reload', config);
    }
    for (const note of this.#bans.list()) channel.notify('refused', note);
    started = true;
    this.#members.add(member);
    watchdog = watchWorker(channel, () => {
      this.#log.logger.error({ worker: worker.process.pid }, 'a worker does not answer; it is ended');
      worker.process.kill('SIGKILL');
    });
    return addresses;
  }

  async #replace(): Promise<void> {
    while (!this.#ending) {
      await sleep(RESTART_PAUSE_MS, undefined, { ref: false });
      try {
        await this.#fork();
        return;
      } catch (error) {
        this.#log.logger.error({ err: error }, 'a worker cannot be started');
      }
    }
  }
}

/** Several processes may share a port, so one that another gateway has would go unnoticed. */
async function refuseTaken(address: ListenAddress): Promise<void> {
  const server = createServer().listen(address);
  await once(server, 'listening');
  const closed = once(server, 'close');
  server.close();
  await closed;
}

/** A worker that does not come to its end in time is killed. */
async function endWorker(worker: Worker, channel: Channel, drainMs: number): Promise<void> {
  if (worker.isDead()) return;
  const exited = once(worker, 'exit');
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), drainMs + EXIT_GRACE_MS);
  try {
    await channel.call('drain', undefined);
    worker.disconnect();
  } catch (error) {
    if (!worker.isDead()) throw error;
  }
  await exited;
  clearTimeout(timer);
}
