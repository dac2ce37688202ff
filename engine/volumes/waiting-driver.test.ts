import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from '../db/database.ts';
import { Events } from '../events/events.ts';
import { systemClock } from '../lib/clock.ts';
import { KeyLock } from '../lib/concurrency/key-lock.ts';
import { claimVolume, VolumeClaims } from './claims.ts';
import { createVolume } from './create.ts';
import type { VolumeDriver, VolumeFacts } from './driver.ts';
import { VolumeDrivers } from './drivers.ts';
import { removeIfAnonymous, removeVolume } from './remove.ts';
import { VolumeStore, type Volume } from './store.ts';

type Call = { what: string; answer: PromiseWithResolvers<void> };

/** Answers a call when the test says so, as a driver in another process does. */
class WaitingDriver implements VolumeDriver {
  readonly name = 'waiting';
  readonly scope = 'global';
  readonly calls: Call[] = [];
  #called = Promise.withResolvers<void>();

  check(): void {}
  needsMount(): boolean {
    return true;
  }

  async create({ name }: Volume): Promise<void> {
    await this.#asked(`create ${name}`);
  }

  async remove({ name }: Volume, forget: () => void): Promise<boolean> {
    await this.#asked(`remove ${name}`);
    forget();
    return true;
  }

  async mount({ name }: Volume): Promise<string> {
    await this.#asked(`mount ${name}`);
    return `/mnt/${name}`;
  }

  async unmount({ name }: Volume): Promise<void> {
    await this.#asked(`unmount ${name}`);
  }

  async look(): Promise<VolumeFacts> {
    return await Promise.resolve({ path: '' });
  }

  async reconcile(): Promise<void> {
    await Promise.resolve();
  }

  /** The next call that has not been taken yet. */
  async next(): Promise<Call> {
    while (this.calls.length === 0) await this.#called.promise;
    return this.calls.shift()!;
  }

  async #asked(what: string): Promise<void> {
    const answer = Promise.withResolvers<void>();
    this.calls.push({ what, answer });
    this.#called.resolve();
    this.#called = Promise.withResolvers();
    await answer.promise;
  }
}

function volumesEngine() {
  const db = new Database(':memory:');
  const events = new Events(db, systemClock, console);
  const driver = new WaitingDriver();
  const users: string[] = [];
  return {
    clock: systemClock,
    db,
    driver,
    events,
    locks: new KeyLock(),
    users,
    volumes: new VolumeStore(db),
    volumeClaims: new VolumeClaims(),
    volumeDrivers: new VolumeDrivers(driver),
    volumeUsage: { usersOf: () => users, runningUsersOf: () => users, isIncomplete: () => false },
    told: () => events.after(0).map(({ action, id }) => `${action} ${id}`),
    [Symbol.dispose]: () => db[Symbol.dispose](),
  };
}

type TestParts = ReturnType<typeof volumesEngine>;

async function answerNext({ driver }: TestParts, what: string, error?: Error): Promise<void> {
  const call = await driver.next();
  assert.equal(call.what, what);
  if (error === undefined) call.answer.resolve();
  else call.answer.reject(error);
}

async function made(engine: TestParts, anonymous = false): Promise<Volume> {
  const making = createVolume(engine, { name: 'data', anonymous });
  await answerNext(engine, 'create data');
  return await making;
}

test('two creates of one name make one volume', async () => {
  using engine = volumesEngine();

  const both = [createVolume(engine, { name: 'data' }), createVolume(engine, { name: 'data' })];
  await answerNext(engine, 'create data');

  const [first, second] = await Promise.all(both);
  assert.equal(first, second);
  assert.deepEqual(engine.driver.calls, []);
  assert.deepEqual(engine.told(), ['create data']);
});

test('a volume is known to others only once its driver has made it', async () => {
  using engine = volumesEngine();

  const making = createVolume(engine, { name: 'data' });
  const call = await engine.driver.next();

  assert.equal(engine.volumes.get('data'), undefined);
  call.answer.resolve();
  assert.equal((await making).driver, 'waiting');
});

test('a create that the driver refuses leaves nothing, and the next one that waits for it is asked anew', async () => {
  using engine = volumesEngine();

  const [refused, second] = [createVolume(engine, { name: 'data' }), createVolume(engine, { name: 'data' })];
  await answerNext(engine, 'create data', new Error('no space there'));
  await assert.rejects(refused, /no space there/);
  await answerNext(engine, 'create data');

  assert.equal((await second).name, 'data');
  assert.deepEqual(engine.told(), ['create data']);
});

test('a create that meets a removal makes the volume anew', async () => {
  using engine = volumesEngine();
  await made(engine);

  const removal = removeVolume(engine, 'data');
  const again = createVolume(engine, { name: 'data' });
  await answerNext(engine, 'remove data');
  await answerNext(engine, 'create data');

  await removal;
  const volume = await again;
  assert.equal(engine.volumes.get('data'), volume);
  assert.deepEqual(engine.told(), ['create data', 'destroy data', 'create data']);
});

test('of two removals the second finds nothing', async () => {
  using engine = volumesEngine();
  await made(engine);

  const both = [removeVolume(engine, 'data'), removeVolume(engine, 'data')];
  await answerNext(engine, 'remove data');

  const [first, second] = await Promise.allSettled(both);
  assert.equal(first?.status, 'fulfilled');
  assert.match(String(second?.status === 'rejected' && second.reason), /no such volume/);
});

test('a removal that the driver refuses leaves the volume, and can be repeated', async () => {
  using engine = volumesEngine();
  await made(engine);

  const refused = removeVolume(engine, 'data');
  await answerNext(engine, 'remove data', new Error('it is busy there'));
  await assert.rejects(refused, /it is busy there/);

  assert.ok(engine.volumes.get('data'));
  const again = removeVolume(engine, 'data');
  await answerNext(engine, 'remove data');
  await again;
  assert.deepEqual(engine.told(), ['create data', 'destroy data']);
});

test('a volume that a container is being created with is not removed', async () => {
  using engine = volumesEngine();
  await made(engine, true);
  await createVolume(engine, { name: 'data', claimedBy: 'c1' });

  await assert.rejects(removeVolume(engine, 'data'), /volume is in use - \[c1\]/);
  await removeIfAnonymous(engine, 'data');

  assert.ok(engine.volumes.get('data'));
  engine.volumeClaims.release('c1');
  const removal = removeIfAnonymous(engine, 'data');
  await answerNext(engine, 'remove data');
  await removal;
  assert.equal(engine.volumes.get('data'), undefined);
});

test("a claim of another container's volume that meets its removal is refused", async () => {
  using engine = volumesEngine();
  await made(engine);

  const removal = removeVolume(engine, 'data');
  const claim = claimVolume(engine, 'data', 'c1');
  await answerNext(engine, 'remove data');

  await removal;
  await assert.rejects(claim, /volume data was removed meanwhile/);
  assert.deepEqual(engine.volumeClaims.usersOf('data'), []);
});
