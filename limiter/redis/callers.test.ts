import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KnownCallers } from './callers.ts';

test('idle callers are forgotten when there are many; callers with requests under way, calls or doubts stay', () => {
  const callers = new KnownCallers('gantry:');
  const idle = callers.find('user:idle');
  const busy = callers.find('user:busy');
  busy.underWay = 1;
  const calling = callers.find('user:calling');
  calling.calls = 1;
  const uncertain = callers.find('user:uncertain');
  uncertain.uncertain = true;

  for (let n = 0; n < 5000; n += 1) callers.find(`user:${n}`);

  assert.notEqual(callers.find('user:idle'), idle);
  for (const caller of [busy, calling, uncertain]) assert.equal(callers.find(caller.key), caller);
});
