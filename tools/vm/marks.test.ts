import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mark, markIn, Results } from './marks.ts';

test('a mark is found behind other text in its line, and nothing else is one', () => {
  const result = { part: 'tests/vm/a.vm.test.ts', passed: 3, failed: 0, seconds: 7 };

  assert.deepEqual(markIn(mark(result)), result);
  assert.equal(markIn(`\u001b]3008;end\u001b\\${mark('begins')}`), 'begins');
  for (const line of ['✔ fine (3 ms)', '@@gantry {"part":"tests/a', 'gantry "begins"']) {
    assert.equal(markIn(line), undefined);
  }
});

test('only a job of which every part has passed is good', () => {
  const planned = (...parts: string[]): Results => {
    const results = new Results();
    for (const part of parts) results.add({ planned: part });
    return results;
  };
  const ended = planned('demo', 'a');
  ended.add({ part: 'demo', passed: 1, failed: 0, seconds: 60 });
  assert.equal(ended.isGood, false); // `a` has not ended
  assert.match(ended.table(), /^a +not run$/m);

  ended.add({ part: 'a', passed: 3, failed: 0, seconds: 7 });
  assert.equal(ended.isGood, true);
  assert.match(ended.table(), /^a +3 +0 +7\nall +4 +0 +67$/m);

  ended.add({ part: 'a', passed: 3, failed: 1, seconds: 7 });
  assert.equal(ended.isGood, false);
  assert.equal(planned().isGood, false);
});
