import { Endpoints, limitsIn } from '@gantry/limiter/endpoints.ts';
import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import type { Ask, CallerState, Endpoint, EndpointDefinition, LimitRules, Verdict } from '@gantry/limiter/types.ts';

import { type Questions, CHARGE, decodeVerdicts, END, GIVE_BACK, RECOUNT } from './batch.ts';
import type { Channel } from './channel.ts';

type Waiting = (verdict: Verdict) => void;

/**
 * The store of a worker: the counts are in the primary process, so that all workers decide on the same ones.
 *
 * Questions of one turn of the event loop go over in one message. The primary process fails to answer only when it
 * is gone, and then this one ends as well.
 */
export class SharedStore implements LimitStore {
  readonly endpoints = new Endpoints();
  readonly #channel: Channel;
  readonly #numbers = new WeakMap<Endpoint, number>();
  readonly #numberByDefinition = new Map<string, number>();
  /** In the order of the asks, which is that of the verdicts. */
  readonly #waiting: Waiting[][] = [];
  #asking: Waiting[] = [];
  #batch: Questions = { endpoints: [], asks: [], changes: [] };
  #scheduled = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  nowMs(): number {
    return Date.now();
  }

  async decide({ key, quota, endpoint, points, cost }: Ask): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    this.#batch.asks.push(key, quota === Infinity ? -1 : quota, this.#numberOf(endpoint), points, cost);
    this.#asking.push(resolve);
    this.#schedule();
    return await promise;
  }

  release(_ask: Ask, ticket: number, cpuSeconds: number): void {
    this.#change(ticket, END, cpuSeconds, 0);
  }

  charge(_ask: Ask, ticket: number, cpuSeconds: number, points: number): void {
    this.#change(ticket, CHARGE, cpuSeconds, points);
  }

  giveBack(_ask: Ask, ticket: number): void {
    this.#change(ticket, GIVE_BACK, 0, 0);
  }

  recount(_ask: Ask, ticket: number, _decidedMs: number, change: number): void {
    this.#change(ticket, RECOUNT, 0, change);
  }

  /** The answer to the oldest batch with asks. */
  answered(numbers: readonly number[]): void {
    const asking = this.#waiting.shift() ?? [];
    for (const [index, verdict] of decodeVerdicts(numbers).entries()) asking[index]?.(verdict);
  }

  async chargeContent(key: string, count: number, _rules: LimitRules): Promise<void> {
    await this.#channel.call('content', { key, count });
  }

  async forget(key: string): Promise<void> {
    this.#send(); // what was spent before is forgotten too
    await this.#channel.call('forget', key);
  }

  async peek(key: string): Promise<CallerState> {
    this.#send(); // so that what was decided before is seen
    return (await this.#channel.call('peek', key)) as CallerState;
  }

  async *scan(): AsyncGenerator<CallerState> {
    this.#send();
    yield* (await this.#channel.call('scan', undefined)) as CallerState[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#send();
  }

  #change(ticket: number, change: number, cpuSeconds: number, points: number): void {
    this.#batch.changes.push(ticket, change, cpuSeconds, points);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const batch = this.#batch;
    if (batch.asks.length === 0 && batch.changes.length === 0) return;
    this.#batch = { endpoints: [], asks: [], changes: [] };
    if (this.#asking.length > 0) {
      this.#waiting.push(this.#asking);
      this.#asking = [];
    }
    this.#channel.notify('batch', batch);
  }

  #numberOf(endpoint: Endpoint): number {
    const known = this.#numbers.get(endpoint);
    if (known !== undefined) return known;
    // A reload makes new endpoints of the same kind.
    const definition = definitionOf(endpoint);
    const text = JSON.stringify(definition);
    let number = this.#numberByDefinition.get(text);
    if (number === undefined) {
      number = this.#numberByDefinition.size;
      this.#numberByDefinition.set(text, number);
      this.#batch.endpoints.push(definition);
    }
    this.#numbers.set(endpoint, number);
    return number;
  }
}

function definitionOf(endpoint: Endpoint): EndpointDefinition {
  const { name, category, graphql, points, primary, content, contentPerMinute, contentPerHour, shadow } = endpoint;
  const own = {
    ...(contentPerMinute === Infinity ? {} : { perMinute: contentPerMinute }),
    ...(contentPerHour === Infinity ? {} : { perHour: contentPerHour }),
  };
  return {
    name,
    category,
    api: graphql ? 'graphql' : 'rest',
    points,
    primary,
    content: content && own,
    shadow: limitsIn(shadow),
  };
}
