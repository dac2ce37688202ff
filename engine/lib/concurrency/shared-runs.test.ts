import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SharedRuns } from './shared-runs.ts';

suite('shared runs', () => {
  test('all callers during a run share the next, which begins after it; other keys go on beside it', async () => {
    const begun: string[] = [];
    const ends: PromiseWithResolvers<void>[] = [];
    const runs = new SharedRuns<string>(async (key) => {
      begun.push(key);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      await end.promise;
    });
    const done: string[] = [];
    const ask = async (name: string, key: string): Promise<void> => {
      await runs.run(key);
      done.push(name);
    };

    const first = ask('first', 'a');
    const shared = [ask('second', 'a'), ask('third', 'a')];
    const other = ask('other', 'b');
    assert.deepEqual(begun, ['a', 'b']);
    ends[1]!.resolve();
    await other;
    ends[0]!.resolve();
    await first;
    while (begun.length < 3) await Promise.resolve();
    const last = ask('fourth', 'a');
    assert.deepEqual(
      [begun, done],
      [
        ['a', 'b', 'a'],
        ['other', 'first'],
      ],
    );
    ends[2]!.resolve();
    await Promise.all(shared);
    while (begun.length < 4) await Promise.resolve();
    ends[3]!.resolve();
    await last;
    assert.deepEqual(done.slice(2).toSorted(), ['fourth', 'second', 'third']);
    assert.equal(done.at(-1), 'fourth');
  });

  test('a failed run fails for its callers, and the next one begins', async () => {
    let count = 0;
    const runs = new SharedRuns<string>(async () => {
      count += 1;
      await Promise.resolve();
      if (count === 1) throw new Error('no');
    });
    const [first, second] = await Promise.allSettled([runs.run('a'), runs.run('a')]);

    assert.deepEqual([first.status, second.status, count], ['rejected', 'fulfilled', 2]);
  });
});
