import type { Decision } from '@gantry/limiter/types.ts';

/** A caller and the primary limit that it has used most of; ratio 1 is all of it. */
export type NearestCaller = Readonly<{ key: string; resource: string; ratio: number; reset: number }>;

/** Callers below half of their limits are near none. */
const MIN_RATIO = 0.5;
/** Callers that are followed at once in each process. */
const MAX_FOLLOWED = 1000;
const MAX_SHOWN = 20;

/** The callers nearest to their primary limits at their last decisions, until their windows end. */
export class NearestCallers {
  readonly #callers = new Map<string, NearestCaller>();

  note({ caller: { key }, resource, used, limit, reset }: Decision): void {
    const ratio = limit === 0 ? 1 : used / limit;
    const known = this.#callers.get(key);
    const isOther = known !== undefined && known.resource !== resource && known.reset > nowSeconds();
    if (isOther && known.ratio > ratio) return;
    if (ratio < MIN_RATIO) {
      if (known !== undefined) this.#callers.delete(key);
      return;
    }
    this.#callers.set(key, { key, resource, ratio, reset });
    if (this.#callers.size > MAX_FOLLOWED) this.#drop();
  }

  forget(key: string): void {
    this.#callers.delete(key);
  }

  /** The nearest first. */
  list(): NearestCaller[] {
    return nearestOf([...this.#callers.values()]);
  }

  /** Half of them stay, so that a flood of callers costs little for each. */
  #drop(): void {
    const nearest = byRatio([...this.#callers.values()]).slice(0, MAX_FOLLOWED / 2);
    this.#callers.clear();
    for (const caller of nearest) this.#callers.set(caller.key, caller);
  }
}

/** The first twenty of what one or several processes know. */
export function nearestOf(callers: readonly NearestCaller[]): NearestCaller[] {
  const keys = new Set<string>();
  const nearest = byRatio(callers).filter(({ key }) => !keys.has(key) && keys.add(key));
  return nearest.slice(0, MAX_SHOWN);
}

/** The nearest first, without those whose windows are over. */
function byRatio(callers: readonly NearestCaller[]): NearestCaller[] {
  const now = nowSeconds();
  const counted = callers.filter(({ reset }) => reset > now);
  return counted.toSorted((one, other) => other.ratio - one.ratio || other.reset - one.reset);
}

function nowSeconds(): number {
  return Date.now() / 1000;
}
