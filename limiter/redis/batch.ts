import type { LimitRules } from '../types.ts';
import type { CallerHere, Share } from './callers.ts';
import type { Operation } from './operation.ts';

/** Operations of one call of the script. A caller has one share of it: the script reads and writes each key once. */
export class Batch {
  readonly rules: LimitRules;
  shares: Share[] = [];
  size = 0;

  constructor(rules: LimitRules) {
    this.rules = rules;
  }

  add(caller: CallerHere, operation: Operation): void {
    this.size += 1;
    if (caller.share?.batch === this) {
      caller.share.operations.push(operation);
      return;
    }
    caller.share = { batch: this, caller, operations: [operation] };
    this.shares.push(caller.share);
  }

  /** A share of its own, for a caller that has none here and gets nothing more. */
  put(caller: CallerHere, operations: Operation[]): void {
    this.size += operations.length;
    this.shares.push({ batch: this, caller, operations });
  }

  /** `most` counts callers where it is 1, since then each call may name one key only. */
  hasRoom(caller: CallerHere, most: number): boolean {
    return most === 1 ? caller.share?.batch === this : this.size < most;
  }

  /** It is sent: its callers begin new shares, and no longer refer to it. */
  begin(): void {
    for (const share of this.shares) {
      const { caller } = share;
      if (caller.share === share) caller.share = undefined;
      caller.calls += 1;
    }
  }

  end(): void {
    for (const { caller } of this.shares) caller.calls -= 1;
  }

  /** Takes out the ends of these callers' requests. */
  takeEnds(callers: ReadonlySet<CallerHere>): Map<CallerHere, Operation[]> {
    const taken = new Map<CallerHere, Operation[]>();
    for (const share of this.shares) {
      const { caller, operations } = share;
      if (!callers.has(caller)) continue;
      const ends = operations.filter(isEnd);
      if (ends.length === 0) continue;
      taken.set(caller, ends);
      this.size -= ends.length;
      share.operations = operations.filter((operation) => !isEnd(operation));
      if (share.operations.length === 0 && caller.share === share) caller.share = undefined;
    }
    this.shares = this.shares.filter(({ operations }) => operations.length > 0);
    return taken;
  }
}

function isEnd({ kind }: Operation): boolean {
  return kind === 'end' || kind === 'graphql-end';
}
