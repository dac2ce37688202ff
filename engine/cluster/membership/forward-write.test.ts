import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answeringManager, root } from '@gantry/testing/cluster/answering-manager.ts';

import { sleep, systemClock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { WireClient } from '../wire/client.ts';
import { forwardWrite } from './forward-write.ts';

const body = { write: 'removeService', args: 'web' } as const;

/** Tells once, at the next moment, that the leader has changed. */
const feed = {
  onLeader: (tell: (leader: undefined) => void): Disposable => {
    const timer = setImmediate(() => tell(undefined));
    return { [Symbol.dispose]: () => clearImmediate(timer) };
  },
};

test('a leader that does not answer is waited for until a while after it leads no more', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  const silent = await answeringManager(parts, '/v1/write', async () => await Promise.withResolvers().promise);

  await assert.rejects(
    forwardWrite({ clock: systemClock, client, feed }, silent, body),
    (error: unknown) => error instanceof EngineError && /the leader of the cluster has changed/.test(error.message),
  );
});

test('the last answer of a leader that ends in order counts', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  const done = { result: undefined, revision: 7 };
  const last = await answeringManager(parts, '/v1/write', async () => {
    await sleep(systemClock, 200);
    return done;
  });

  assert.deepEqual(await forwardWrite({ clock: systemClock, client, feed }, last, body), done);
});
