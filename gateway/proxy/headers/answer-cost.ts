import type { IncomingHttpHeaders } from 'node:http';

import type { Config } from '../../config/schema.ts';
import type { Exchange } from '../exchange.ts';

/** An upstream that goes wrong cannot use up an hour's limit by a few answers. */
const MAX_COST = 1000;

/** The cost of requests by their answers, of the primary limit. */
export class AnswerCost {
  /** Statuses of answers that cost nothing. */
  readonly #free: ReadonlySet<number>;
  /** In lower case; empty: none. */
  readonly #header: string;

  constructor({ free, header }: Config['cost']) {
    this.#free = new Set(free.flatMap(statusesOf));
    this.#header = header.toLowerCase();
  }

  /** `name` in lower case. Only the gateway reads this header. */
  isHeader(name: string): boolean {
    return name === this.#header;
  }

  /** Undefined: the answer says nothing about it, or nothing that can be understood. */
  of(status: number, headers: IncomingHttpHeaders): number | undefined {
    if (this.#free.has(status)) return 0;
    const value = this.#header === '' ? undefined : headers[this.#header];
    if (typeof value !== 'string' || !/^\d+$/.test(value)) return undefined;
    return Math.min(MAX_COST, Number(value));
  }
}

/** `5xx` stands for a hundred statuses. */
function statusesOf(free: Config['cost']['free'][number]): readonly number[] {
  return typeof free === 'number' ? [free] : Array.from({ length: 100 }, (_, n) => Number(free[0]) * 100 + n);
}

/** Sets the cost of a request by its answer, before its headers are written. */
export function settleCost({ policy, decision }: Exchange, status: number, headers: IncomingHttpHeaders = {}): void {
  if (decision?.allowed !== true) return;
  const cost = policy.cost.of(status, headers);
  if (cost !== undefined) decision.setCost(cost);
}
