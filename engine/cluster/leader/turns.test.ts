import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pino } from 'pino';

import { systemClock } from '../../lib/clock.ts';
import { Replica } from '../state/replica.ts';
import type { Change } from '../state/view.ts';
import type { Batches } from './batches.ts';
import { Turns, type Decisions } from './turns.ts';

const log = pino({ enabled: false });

test('writes that wait at the same time are stored in their order, in turns that have an end', async () => {
  const replica = new Replica(systemClock);
  const stored: string[][] = [];
  const batches = {
    store: async (changes: IteratorObject<Change>) => {
      stored.push([...changes].map(({ id }) => id));
      await Promise.resolve();
    },
  } as unknown as Batches;
  const decisions = () => ({ run: () => undefined });
  const parts = { batches, replica, clock: systemClock, log, decisions };
  await using turns = new Turns(parts, ({ message }) => assert.fail(message));
  const ids = Array.from({ length: 30 }, (_, work) => Array.from({ length: 200 }, (_task, at) => `${work} ${at}`));

  const writes = ids.map(async (own) => {
    await turns.write((draft) => {
      for (const place of own) draft.put('restart', { service: 's', place, template: '', attempts: [] });
    });
  });
  await Promise.all(writes);

  assert.deepEqual(
    stored.flat(),
    ids.flat().map((place) => `s/${place}`),
  );
  assert.deepEqual(
    stored.map(({ length }) => length),
    [2000, 2000, 2000],
  );
});

test('writes are stored though the decisions behind them fail', async () => {
  const replica = new Replica(systemClock);
  const stored: string[] = [];
  const batches = {
    store: async (changes: IteratorObject<Change>) => {
      stored.push(...[...changes].map(({ id }) => id));
      await Promise.resolve();
    },
  } as unknown as Batches;
  let made = 0;
  const decisions = (): Decisions => {
    made += 1;
    return {
      run: (draft) => {
        draft.put('restart', { service: 'half', place: '1', template: '', attempts: [] });
        throw new RangeError('a bad record');
      },
    };
  };
  await using turns = new Turns({ batches, replica, clock: systemClock, log, decisions }, ({ message }) =>
    assert.fail(message),
  );

  for (const place of ['1', '2', '3']) {
    await turns.write((draft) => draft.put('restart', { service: 's', place, template: '', attempts: [] }));
  }

  assert.deepEqual(stored, ['s/1', 's/2', 's/3']);
  assert.equal(made, 2, 'decisions begin anew once, and are not tried again with each write');
});

test('a record that is too large to be stored refuses its own write only', async () => {
  const replica = new Replica(systemClock);
  const stored: string[] = [];
  const batches = {
    store: async (changes: IteratorObject<Change>) => {
      stored.push(...[...changes].map(({ id }) => id));
      await Promise.resolve();
    },
  } as unknown as Batches;
  const decisions = (): Decisions => ({ run: () => undefined });
  const parts = { batches, replica, clock: systemClock, log, decisions };
  await using turns = new Turns(parts, ({ message }) => assert.fail(message));
  const put = async (place: string, letters: number): Promise<unknown> =>
    await turns.write((draft) =>
      draft.put('restart', { service: 's', place, template: 'é'.repeat(letters), attempts: [] }),
    );

  const [small, large, other] = await Promise.allSettled([put('1', 9), put('2', 1_100_000), put('3', 500_000)]);

  assert.deepEqual([small.status, large.status, other.status], ['fulfilled', 'rejected', 'fulfilled']);
  await assert.rejects(put('2', 1_100_000), { kind: 'invalid', message: /^the restart is too large to be stored/ });
  assert.deepEqual(stored, ['s/1', 's/3']);
});
