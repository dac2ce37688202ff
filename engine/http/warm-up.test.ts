import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import { test } from 'node:test';

import { systemClock, type Clock } from '../lib/clock.ts';
import { warmUp } from './warm-up.ts';

test('each path is asked for as often as the others, and no connection is left', async () => {
  const asked = new Map<string, number>();
  const sockets = new Set<object>();
  const listener: RequestListener = ({ url = '', socket }, response) => {
    asked.set(url, (asked.get(url) ?? 0) + 1);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    response.end('here');
  };

  await warmUp(listener, ['/one', '/two'], systemClock);

  assert.deepEqual([...asked.keys()], ['/one', '/two']);
  assert.ok(asked.get('/one')! > 10);
  assert.equal(asked.get('/one'), asked.get('/two'));
  assert.equal(sockets.size, 0);
});

test('an answer that does not come holds up nobody longer than the time there is', async () => {
  const timers: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    after: (_milliseconds, callback) => {
      timers.push(callback);
      return { [Symbol.dispose]: () => undefined };
    },
  };
  const left = Promise.withResolvers<void>();
  let asked = 0;
  const listener: RequestListener = (_request, response: ServerResponse) => {
    asked += 1;
    response.on('close', left.resolve);
    for (const ring of timers) ring();
  };

  await warmUp(listener, ['/silent'], clock);
  await left.promise;

  assert.equal(asked, 1);
});
