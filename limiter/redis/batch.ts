import type { LimitRules } from '../types.ts';
import type { Operation } from './wire.ts';

/** What one call of the script will do; the operations of one caller together, in the order in which they came. */
export class Batch {
  readonly rules: LimitRules;
  readonly callers = new Map<string, Operation[]>();
  size = 0;

  constructor(rules: LimitRules) {
    this.rules = rules;
  }

  add(key: string, operation: Operation): void {
    const operations = this.callers.get(key);
    if (operations === undefined) this.callers.set(key, [operation]);
    else operations.push(operation);
    this.size += 1;
  }

  /** `most` counts callers where it is 1, since then each call may name one key only. */
  hasRoom(key: string, most: number): boolean {
    return most === 1 ? this.callers.has(key) : this.size < most;
  }

  *operations(): Generator<Operation> {
    for (const operations of this.callers.values()) yield* operations;
  }

  /** Takes a caller's endings out. */
  takeReleases(key: string): Operation[] {
    const operations = this.callers.get(key) ?? [];
    const taken = operations.filter(({ kind }) => kind === 'release');
    if (taken.length === 0) return taken;
    const kept = operations.filter(({ kind }) => kind !== 'release');
    if (kept.length === 0) this.callers.delete(key);
    else this.callers.set(key, kept);
    this.size -= taken.length;
    return taken;
  }
}
