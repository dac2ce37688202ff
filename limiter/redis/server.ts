import { createHash, randomInt } from 'node:crypto';

import type { Batch } from './batch.ts';
import type { CallerHere } from './callers.ts';
import type { Entry, Link } from './links/link.ts';
import { linkTo, type RedisStoreOptions } from './options.ts';
import { NoAnswer, Patience } from './patience.ts';
import { SCRIPT } from './script.ts';
import { decodeVerdicts, encodeCall, type MarkedVerdict } from './wire.ts';

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

  /** When the server last sent something, by `performance.now()`. */
  get answeredAt(): number {
    return this.#answeredAt;
  }

  isAway({ redisKey }: CallerHere): boolean {
    return !this.#link.isThere(redisKey);
  }

  /** A request could not be sent: the next answer will be the end of troubles. */
  noteMissed(): void {
    this.#troubled ??= 'lost';
  }

  /** Runs the script for a batch. The verdicts are those of its decisions, of content and of what is forgotten. */
  async run(batch: Batch): Promise<MarkedVerdict[]> {
    const sentAt = Date.now();
    const first = batch.shares[0]?.caller.redisKey ?? '';
    try {
      const { nowMs, verdicts } = decodeVerdicts(await this.#patience.within(this.#evaluate(batch, first)));
      if (this.#settings.now === undefined) {
        this.#clockOffsetMs = nowMs - (sentAt + Date.now()) / 2;
        this.#isTimeKnown = true;
      }
      return verdicts;
    } catch (error) {
      this.#troubled = error instanceof NoAnswer ? 'lost' : 'refusing';
      if (error instanceof NoAnswer) this.#link.noAnswer(first);
      throw error;
    }
  }

  /** A caller's value. */
  async value(redisKey: string): Promise<Buffer | null> {
    return await this.#patience.within(this.#link.send(redisKey, ['GET', redisKey]));
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

  async #evaluate(batch: Batch, first: string): Promise<Buffer> {
    const keys = batch.shares.map(({ caller }) => caller.redisKey);
    if (!this.#link.isThere(first)) throw new Error('redis is not there');
    const { now, leaseSeconds } = this.#settings;
    const sender = { nowMs: now?.() ?? 0, gateway: this.#gateway, leaseSeconds, heardSeconds: this.#heardSeconds() };
    const args = [String(keys.length), ...keys, encodeCall(batch, sender)];
    let reply: Buffer | null;
    try {
      reply = await this.#link.send(first, ['EVALSHA', SCRIPT_SHA, ...args]);
    } catch (error) {
      // A server that was restarted does not know the script, and has not run it.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      reply = await this.#link.send(first, ['EVAL', SCRIPT, ...args]);
    }
    if (reply === null) throw new Error('redis has answered nothing');
    this.#heard('all');
    return reply;
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
