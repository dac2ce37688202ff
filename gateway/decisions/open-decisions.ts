import { randomBytes } from 'node:crypto';

import type { Admission } from '@gantry/limiter/types.ts';

/** Requests of proxies whose end is awaited, at most; each takes about 600 bytes. */
const MAX_OPEN = 100_000;

type Open = Readonly<{ decision: Admission; timer: NodeJS.Timeout }>;

/** Admitted requests that count as under way until their proxy reports the end, or until it is too late. */
export class OpenDecisions implements Disposable {
  readonly #open = new Map<string, Open>();

  /** Returns the token by which the proxy reports the end; undefined: too many are open. */
  hold(decision: Admission, seconds: number): string | undefined {
    if (this.#open.size >= MAX_OPEN) return undefined;
    const token = randomBytes(15).toString('base64url');
    // The time that a lost request took is unknown, so none is charged.
    const timer = setTimeout(() => this.end(token, 0), seconds * 1000).unref();
    this.#open.set(token, { decision, timer });
    return token;
  }

  /** Charges the upstream's seconds, or those since the decision. Returns false if nothing is open under this token. */
  end(token: string, cpuSeconds?: number): boolean {
    const open = this.#open.get(token);
    if (open === undefined) return false;
    this.#open.delete(token);
    clearTimeout(open.timer);
    open.decision.end(cpuSeconds);
    return true;
  }

  [Symbol.dispose](): void {
    for (const token of this.#open.keys()) this.end(token, 0);
  }
}
