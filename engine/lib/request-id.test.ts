import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from './clock.ts';
import { Background } from './concurrency/background.ts';
import { asRequest, currentRequest, requestId } from './request-id.ts';

test('work that a request has started is done for it, also later, again, and in the background', async () => {
  const told: string[] = [];
  const note = (): void => void told.push(currentRequest() ?? 'none');
  const log = { error: note };
  let attempts = 0;
  {
    await using background = new Background(systemClock, log);
    const tasks = asRequest('one', () => [
      background.run('fails', {}, () => Promise.reject(new Error('no'))),
      background.untilDone('fails once', {}, () => {
        attempts += 1;
        if (attempts === 1) throw new Error('not yet');
        told.push(`again ${currentRequest()}`);
      }),
    ]);
    const late = Promise.withResolvers<void>();
    asRequest('two', () =>
      background.after(1, 'later', {}, () => {
        note();
        late.resolve();
      }),
    );
    await Promise.all([...tasks.map(async ({ done }) => await done), late.promise]);
  }

  assert.deepEqual(
    told.toSorted((a, b) => (a < b ? -1 : 1)),
    ['again one', 'one', 'one', 'two'],
  );
  assert.equal(currentRequest(), undefined);
});

test('a request has the name that its client gives it, or one of its own', () => {
  assert.equal(requestId('a-b:c.d_1'), 'a-b:c.d_1');
  const made = ['', 'two words', 'x'.repeat(65), undefined, ['a', 'b']].map((asked) => requestId(asked));
  assert.equal(new Set(made).size, made.length);
  for (const id of made) assert.match(id, /^[0-9a-f]{8}-\d+$/);
});
