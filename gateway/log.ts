import type { IncomingMessage, ServerResponse } from 'node:http';

import { reasonOfRedis } from '@gantry/limiter/redis/reason.ts';
import type { Caller, Endpoint, LimitName, Refusal } from '@gantry/limiter/types.ts';
import { type Logger, pino } from 'pino';

import type { Config } from './config/schema.ts';
import { reasonOf } from './lib/reason.ts';
import type { Policy } from './policy.ts';

/** The most that waits for a reader. */
const WAITING_BYTES = 1024 ** 2;
/** A reader has this long for the last lines. */
const LAST_LINES_MS = 1000;

/** Interval at which one failure or caller is logged at most. */
const REPEAT_MS = 60_000;
const MAX_STORED = 10_000;

/**
 * The gateway's log: JSON lines, without anything secret. Neither headers nor queries are ever written, since both may
 * hold tokens.
 */
export class GatewayLog {
  readonly logger: Logger;
  readonly #output: Output | undefined;
  #requests: boolean;
  #away: { readonly sinceMs: number; toldMs: number; failures: number } | undefined;
  readonly #lately = new Map<string, { atMs: number; left: number }>();
  readonly #nowMs: () => number;
  #isForgottenProxyTold = false;

  /** `nowMs` must not jump when the clock of the machine is set. */
  constructor({ level, requests }: Config['log'], logger?: Logger, nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
    if (logger === undefined) this.#output = new Output();
    this.logger = logger ?? pino({ level, base: { name: 'gateway', pid: process.pid } }, this.#output!.destination);
    this.#requests = requests;
  }

  /** After a reload. */
  change({ level, requests }: Config['log']): void {
    this.logger.level = level;
    this.#requests = requests;
  }

  /** The last line, after which the process may end. */
  async end(): Promise<void> {
    this.logger.info('ended');
    await this.#output?.written();
  }

  /** The first refusal in a row, then every tenth, hundredth, …: a caller that goes on cannot fill the disk. */
  refusal({ caller, endpoint, kind, refusedBy, retryAfterSeconds, repeated }: Refusal): void {
    // `storeAway` logs a store that does not answer.
    if (kind === 'unavailable' || !isPowerOfTen(repeated)) return;
    this.logger.info(
      { caller: caller.key, kind, limit: refusedBy, endpoint: endpoint.name, retryAfterSeconds, repeated },
      'refused',
    );
  }

  shadow(limit: LimitName, caller: Caller, endpoint: Endpoint): void {
    const repeated = this.#left(`shadow ${limit} ${caller.key}`);
    if (repeated === undefined) return;
    this.logger.info({ caller: caller.key, limit, endpoint: endpoint.name, repeated }, 'would have been refused');
  }

  /** A line when a shared store is away, one a minute with a count, and one when it is back (`storeBack`). */
  storeAway(error: unknown): void {
    const nowMs = this.#nowMs();
    if (this.#away === undefined) {
      this.#away = { sinceMs: nowMs, toldMs: nowMs, failures: 1 };
      this.logger.error({ reason: storeReason(error) }, 'the store does not answer');
      return;
    }
    this.#away.failures += 1;
    if (nowMs - this.#away.toldMs < REPEAT_MS) return;
    this.#away.toldMs = nowMs;
    const reason = storeReason(error);
    this.logger.error({ reason, failures: this.#away.failures }, 'the store still does not answer');
  }

  storeBack(): void {
    if (this.#away === undefined) return;
    const { sinceMs, failures } = this.#away;
    this.#away = undefined;
    this.logger.info({ failures, seconds: Math.round(this.#nowMs() - sinceMs) / 1000 }, 'the store answers again');
  }

  /** Once: everybody may send the header, but behind a proxy that was forgotten all clients count as one. */
  unbelieved({ trusted }: Pick<Policy, 'trusted'>, peer: string): void {
    if (this.#isForgottenProxyTold || trusted.trusts(peer)) return;
    this.#isForgottenProxyTold = true;
    this.logger.warn({ peer }, 'X-Forwarded-For is not believed: its sender is none of trustProxy');
  }

  /** Somebody asks for decisions who is no proxy of ours. */
  foreignQuestion(peer: string): void {
    const repeated = this.#left(`foreign question ${peer}`);
    if (repeated !== undefined)
      this.logger.warn({ peer, repeated }, 'a decision is refused: its sender is none of trustProxy');
  }

  /** A proxy asks what cannot be answered: its settings are wrong. */
  wrongQuestion(error: Error): void {
    const repeated = this.#left(`wrong question ${error.message}`);
    if (repeated !== undefined)
      this.logger.error({ problem: error.message, repeated }, 'a proxy asks what cannot be answered');
  }

  noProxyHeader(peer: string): void {
    const repeated = this.#left(`no proxy header ${peer}`);
    if (repeated !== undefined)
      this.logger.error({ peer, repeated }, 'a connection of a trusted proxy begins without the PROXY protocol');
  }

  failure(what: 'store' | 'upstream' | 'identity source', error: unknown): void {
    const repeated = this.#left(`${what} ${error instanceof Error ? error.message : ''}`);
    const told = what === 'store' ? { reason: storeReason(error) } : { err: error };
    if (repeated !== undefined) this.logger.error({ ...told, repeated }, `the ${what} does not answer`);
  }

  spoolFailure(error: unknown): void {
    const repeated = this.#left(`spool ${error instanceof Error ? error.message : ''}`);
    if (repeated !== undefined) this.logger.error({ err: error, repeated }, 'a slow upload cannot be stored');
  }

  bug(error: unknown): void {
    this.logger.error({ err: error }, 'a request has failed in the gateway');
  }

  /** `path` as it was understood, without a query: an absolute target as it was sent can hold a password. */
  request(req: IncomingMessage, res: ServerResponse, caller: Caller, address: string, path: string | undefined): void {
    if (!this.#requests) return;
    this.logger.info({ method: req.method, path, status: res.statusCode, caller: caller.key, address }, 'request');
  }

  /** How often the line was left out since it was last written. Undefined: it is left out again. */
  #left(key: string): number | undefined {
    const nowMs = this.#nowMs();
    const before = this.#lately.get(key);
    if (before !== undefined && nowMs - before.atMs < REPEAT_MS) {
      before.left += 1;
      return undefined;
    }
    this.#lately.delete(key);
    this.#lately.set(key, { atMs: nowMs, left: 0 });
    for (const oldest of this.#lately.keys()) {
      if (this.#lately.size <= MAX_STORED) break;
      this.#lately.delete(oldest);
    }
    return before?.left ?? 0;
  }
}

/** Plain words: texts of Redis and its client mean nothing to most operators. */
function storeReason(error: unknown): string {
  return reasonOfRedis(error) ?? reasonOf(error);
}

function isPowerOfTen(value: number): boolean {
  return value === 1 || value === 10 || value === 100 || (value % 1000 === 0 && Number.isInteger(Math.log10(value)));
}

/** Standard output. What a reader that has gone, or that reads nothing, does not take is lost: the gateway goes on, and ends. */
class Output {
  readonly destination = pino.destination({ dest: 1, sync: false, maxLength: WAITING_BYTES });
  #isLost = false;

  constructor() {
    this.destination.on('error', () => (this.#isLost = true));
    // At the exit it would write what is left again for ever: it takes each failure, also that of a lost reader, for one that passes.
    this.destination.flushSync = () => undefined;
  }

  /** To be called after a line: resolves when all lines are written, or nobody takes them. */
  async written(): Promise<void> {
    if (this.#isLost) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const event of ['drain', 'error'] as const) this.destination.once(event, () => resolve());
    const late = setTimeout(resolve, LAST_LINES_MS);
    await promise;
    clearTimeout(late);
  }
}
