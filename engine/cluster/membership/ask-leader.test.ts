import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answeringManager, freePort, root } from '@gantry/testing/cluster/answering-manager.ts';
import { Type } from 'typebox';

import { systemClock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { NotLeader, WireClient } from '../wire/client.ts';
import { askLeader } from './ask-leader.ts';

test('why the leader cannot do it is told, also when the managers that are asked last do not lead or are away', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  const away = `127.0.0.1:${await freePort()}`;
  const cases: ((leader: string, follower: string) => string[])[] = [
    (leader) => [leader, away],
    (_leader, follower) => [follower, away],
    (leader, follower) => [away, follower, leader],
  ];

  const check = async (managers: (leader: string, follower: string) => string[]): Promise<void> => {
    let asked = 0;
    const leader = await answeringManager(parts, '/ask', () => {
      asked += 1;
      throw new EngineError('unavailable', 'no authority signs');
    });
    const follower = await answeringManager(parts, '/ask', () => {
      throw new NotLeader(leader);
    });
    const request = { path: '/ask', body: {}, answer: Type.Object({}), milliseconds: 3000 };
    await assert.rejects(
      askLeader({ client, clock: systemClock, managers: () => managers(leader, follower) }, request),
      { message: 'no authority signs' },
    );
    assert.ok(asked > 1, 'it is asked again');
  };
  await Promise.all(cases.map(check));
});

test('two managers that name each other as the leader are asked again after a pause, not at once', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  let asked = 0;
  const named: string[] = [];
  for (const other of [1, 0]) {
    const address = await answeringManager(parts, '/ask', () => {
      asked += 1;
      throw new NotLeader(named[other]);
    });
    named.push(address);
  }

  const request = { path: '/ask', body: {}, answer: Type.Object({}), milliseconds: 500 };
  await assert.rejects(askLeader({ client, clock: systemClock, managers: () => named }, request), NotLeader);

  assert.ok(asked <= 14, `${asked} requests`);
});
