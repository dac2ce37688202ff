import { suite } from 'node:test';

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { limitRules, type RuleChanges } from '@gantry/limiter/rules.ts';

import { limitsContract } from './limits.contract.ts';
import { Fixture, TestClock } from './store.fixture.ts';
import { windowsContract } from './windows.contract.ts';

/** Tests the promises of every store. `open` gives an empty one that lives by `now`. */
export function storeContract(name: string, open: (now: () => number) => Promise<LimitStore>): void {
  suite(name, () => {
    const start = async (changes: RuleChanges = {}): Promise<Fixture> => {
      const clock = new TestClock();
      const store = await open(clock.now);
      return new Fixture(clock, store, limitRules(changes));
    };
    limitsContract(start);
    windowsContract(start);
  });
}
