import { createHash, randomInt } from 'node:crypto';

import type { Verdict } from '../types.ts';
import type { CallerHere } from './callers.ts';
import type { Entry, Link } from './links/link.ts';
import { linkTo, type RedisStoreOptions } from './options.ts';
import { NoAnswer, Patience } from './patience.ts';
import { SCRIPT } from './script.ts';
import { type Bounds, decodeVerdict, encodeOperation, type Operation, type Reply, type Sender } from './wire.ts';

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** The server is asked each second, so that it stands still when it says nothing for longer. */
const MIN_SILENCE_MS = 2500;
/** All gateways have renewed their leases this long after the server's return. */
const RENEWAL_GRACE_MS = 5000;

/** The options that a call uses, and the callbacks for troubles. */
type Settings = Required<Pick<RedisStoreOptions, 'timeoutMs' | 'leaseSeconds' | 'reportError' | 'reportBack'>> &
  Pick<RedisStoreOptions, 'now'> &
  Readonly<{
    /** Called when the server is back after a silence in which leases may have ended. */
    reportSilence: () => void;
  }>;

/**
 * The server, or those of a cluster: whether it is there, what time it is, and the script that is run in it.
 *
 * Nothing is queued for a server that is away, and every wait has an end.
 */
export class Server implements Disposable {
  readonly #link: Link;
  readonly #settings: Settings;
  readonly #patience: Patience;
  readonly #connected: Promise<unknown>;
  /** Names this process in leases. */
  readonly #gateway = randomInt(1, 2 ** 32 - 1);
  #clockOffsetMs = 0;
  #answeredAt = performance.now();
  /** The beginning of the server's last long silence, and the moment up to which it matters, by `performance.now()`. */
  #silentFrom = 0;
  #silentUntil = 0;
  /** The server's time is known. */
  #isTimeKnown = false;
  /** There were troubles, and since then no answer; or none but refusals to work. */
  #troubled: 'lost' | 'refusing' | undefined;

  constructor(options: RedisStoreOptions, settings: Settings) {
    this.#settings = settings;
    this.#patience = new Patience(settings.timeoutMs);
    this.#link = linkTo(options, {
      heard: () => this.#heard('lost'),
      troubled: (error) => this.#trouble(error),
    });
    this.#connected = this.#link.connect();
    this.#connected.catch((error: unknown) => this.#trouble(error));
  }

  async ready(): Promise<void> {
    await this.#connected;
  }

  /** The server's time in epoch milliseconds, as far as it is known here. */
  nowMs(): number {
    return this.#settings.now?.() ?? Date.now() + this.#clockOffsetMs;
  }

  isAway({ redisKey }: CallerHere): boolean {
    return !this.#link.isThere(redisKey);
  }

  /** A request could not be sent: the next answer will be the end of troubles. */
  noteMissed(): void {
    this.#troubled ??= 'lost';
  }

  /** Runs the script for an operation on a caller. */
  async run({ redisKey }: CallerHere, operation: Operation, limits: string, bounds?: Bounds): Promise<Verdict> {
    const text = encodeOperation(operation, this.#sender(), limits, bounds);
    const sentAt = Date.now();
    try {
      const sent = this.#link.send<Reply>(redisKey, ['EVALSHA', SCRIPT_SHA, '1', redisKey, text]);
      return this.#noteAnswer(await this.#patience.within(sent), sentAt);
    } catch (error) {
      // A server that was restarted does not know the script, and has not run it.
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return await this.#sendScript(redisKey, text);
      throw this.#noteFailure(redisKey, error);
    }
  }

  /**
   * Runs the script for an operation whose answer nobody awaits: until there is one, or the connection ends. A server that does
   * not know the script fails it.
   */
  async tell({ redisKey }: CallerHere, operation: Operation, limits: string): Promise<unknown> {
    const text = encodeOperation(operation, this.#sender(), limits);
    return await this.#link.send<Reply>(redisKey, ['EVALSHA', SCRIPT_SHA, '1', redisKey, text]);
  }

  /** Rejects when this does not come in time. */
  async within<T>(awaited: Promise<T>): Promise<T> {
    return await this.#patience.within(awaited);
  }

  async #sendScript(redisKey: string, text: string): Promise<Verdict> {
    const sentAt = Date.now();
    try {
      const reply = await this.#patience.within(
        this.#link.send<Reply>(redisKey, ['EVAL', SCRIPT, '1', redisKey, text]),
      );
      return this.#noteAnswer(reply, sentAt);
    } catch (error) {
      throw this.#noteFailure(redisKey, error);
    }
  }

  #sender(): Sender {
    const { now, leaseSeconds } = this.#settings;
    return { nowMs: now?.() ?? 0, gateway: this.#gateway, leaseSeconds, heardSeconds: this.#heardSeconds() };
  }

  #noteAnswer(reply: Reply, sentAt: number): Verdict {
    const verdict = decodeVerdict(reply);
    this.#heard('all');
    if (this.#settings.now === undefined) {
      this.#clockOffsetMs = verdict.nowMs - (sentAt + Date.now()) / 2;
      this.#isTimeKnown = true;
    }
    return verdict;
  }

  #noteFailure(redisKey: string, error: unknown): unknown {
    this.#troubled = error instanceof NoAnswer ? 'lost' : 'refusing';
    if (error instanceof NoAnswer) this.#link.noAnswer(redisKey);
    return error;
  }

  /** A caller's value. */
  async value(redisKey: string): Promise<Buffer | null> {
    return await this.#patience.within(this.#link.send<Buffer | null>(redisKey, ['GET', redisKey]));
  }

  /** The keys with this prefix, and their values, in pages. */
  async *entries(prefix: string): AsyncGenerator<readonly Entry[]> {
    const pages = this.#link.entries(`${escapeGlob(prefix)}{*}`);
    for (;;) {
      const { done, value: page } = await this.#patience.within(pages.next());
      if (done === true) return;
      yield page;
    }
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#patience.within(this.#link.publish(channel, message));
  }

  subscribe(channel: string, listener: (message: string) => void): void {
    this.#link.subscribe(channel, listener);
  }

  [Symbol.dispose](): void {
    this.#patience[Symbol.dispose]();
    this.#link[Symbol.dispose]();
  }

  #heardSeconds(): number {
    if (!this.#isTimeKnown) return 0;
    const now = performance.now();
    const heardAt = now < this.#silentUntil ? this.#silentFrom : this.#answeredAt;
    return Math.floor((this.nowMs() - (now - heardAt)) / 1000);
  }

  #trouble(error: unknown): void {
    this.#troubled ??= 'lost';
    this.#settings.reportError(error);
  }

  /** Something has come from a server, however late; a script that was run ends all troubles. */
  #heard(ended: 'lost' | 'all'): void {
    const before = this.#answeredAt;
    this.#answeredAt = performance.now();
    if (this.#answeredAt - before > MIN_SILENCE_MS) {
      this.#silentFrom = before;
      this.#silentUntil = this.#answeredAt + RENEWAL_GRACE_MS;
      this.#settings.reportSilence();
    }
    if (this.#troubled === undefined || (ended === 'lost' && this.#troubled === 'refusing')) return;
    this.#troubled = undefined;
    this.#settings.reportBack();
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, String.raw`\$&`);
}
