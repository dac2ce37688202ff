import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Type } from 'typebox';

import { systemClock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { NotLeader, WireClient } from '../wire/client.ts';
import { answeringManager, freePort, root } from './answering-manager.ts';
import { askLeader } from './ask-leader.ts';

test('why the leader cannot do it is told, also when the managers that are asked last do not lead or are away', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  let asked = 0;
  const leader = await answeringManager(parts, '/ask', () => {
    asked += 1;
    throw new EngineError('unavailable', 'no authority signs');
  });
  const follower = await answeringManager(parts, '/ask', () => {
    throw new NotLeader(leader);
  });
  const away = `127.0.0.1:${await freePort()}`;
  const request = { path: '/ask', body: {}, answer: Type.Object({}), milliseconds: 500 };

  for (const managers of [
    [leader, away],
    [follower, away],
    [away, follower, leader],
  ]) {
    const before = asked;
    await assert.rejects(
      askLeader({ client, clock: systemClock }, () => managers, request),
      { message: 'no authority signs' },
    );
    assert.ok(asked > before + 1, 'it is asked again');
  }
});
