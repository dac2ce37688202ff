import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';

import { shownContract } from '@gantry/testing/limiter/shown.contract.ts';
import { storeContract } from '@gantry/testing/limiter/store.contract.ts';
import { TestClock } from '@gantry/testing/limiter/store.fixture.ts';
import { storeModelContract } from '@gantry/testing/limiter/store.model.contract.ts';

import { RateLimiter } from '../limiter.ts';
import { callerFrom } from '../primary.ts';
import { limitRules } from '../rules.ts';
import { SqliteStore } from './store.ts';

const folder = await mkdtemp(join(tmpdir(), 'gantry-limits-'));
after(async () => await rm(folder, { recursive: true }));

let files = 0;
function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

storeContract('SQLite', async (now) => new SqliteStore(newFile(), { now, flushMs: 20 }));
storeModelContract('SQLite', async (now) => new SqliteStore(newFile(), { now, flushMs: 20 }));
shownContract('SQLite', async (now) => new SqliteStore(newFile(), { now, flushMs: 20 }));

const caller = callerFrom({ kind: 'user', userId: '7' });

test('further windows of a category are there again after a restart', async () => {
  const clock = new TestClock();
  const file = newFile();
  const also = [{ limit: 3, windowSeconds: 60 }];
  const rules = limitRules({ categories: { core: { limit: 'caller', windowSeconds: 3600, also } } });
  const used: number[] = [];
  for (let start = 0; start < 2; start += 1) {
    await using limiter = new RateLimiter({ store: new SqliteStore(file, { now: clock.now }), rules });
    const decision = await limiter.admit(caller, limiter.endpoint({ name: 'GET /' }));
    used.push(decision.used);
    assert.equal(decision.limit, 3);
  }

  assert.deepEqual(used, [1, 2]);
});

test('counts are there again after a restart, requests under way are not', async () => {
  const clock = new TestClock();
  const file = newFile();
  {
    await using limiter = new RateLimiter({ store: new SqliteStore(file, { now: clock.now }) });
    const first = await limiter.admit(caller, limiter.endpoint({ name: 'POST /issues', content: true }));
    assert.ok(first.allowed);
    first.end(2);
    await limiter.admit(caller, limiter.endpoint({ name: 'GET /search', category: 'search' }));
  }

  await using limiter = new RateLimiter({ store: new SqliteStore(file, { now: clock.now }) });
  const state = await limiter.explainCaller(caller.key);

  assert.equal(state.underWay, 0);
  assert.deepEqual(
    state.windows.map(({ name, used }) => [name, used]),
    [
      ['core', 1],
      ['content-minute', 1],
      ['content-hour', 1],
      ['cpu', 2000],
      ['graphql-cpu', 0],
      ['points POST /issues', 5],
      ['search', 1],
      ['points GET /search', 1],
    ],
  );
});

test('expired windows are gone from the file', async () => {
  const clock = new TestClock();
  const file = newFile();
  const store = new SqliteStore(file, { now: clock.now });
  await using limiter = new RateLimiter({ store });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  for (const userId of ['1', '2', '3']) {
    using decision = await limiter.admit(callerFrom({ kind: 'user', userId }), endpoint);
    assert.ok(decision.allowed);
  }
  store.flush();

  clock.pass(3700);
  store.flush();

  using database = new DatabaseSync(file);
  assert.equal(database.prepare('SELECT count(*) AS rows FROM callers').get()?.['rows'], 0);
});

test('a process that is killed loses no more than the last flush', async () => {
  const file = newFile();
  const program = `
    import { RateLimiter } from ${JSON.stringify(new URL('../limiter.ts', import.meta.url).href)};
    import { SqliteStore } from ${JSON.stringify(new URL('store.ts', import.meta.url).href)};
    const limiter = new RateLimiter({ store: new SqliteStore(${JSON.stringify(file)}, { flushMs: 200 }) });
    const endpoint = limiter.endpoint({ name: 'GET /' });
    const caller = { kind: 'user', key: 'user:7', limit: 5000, label: 'user' };
    for (let n = 0; n < 60; n += 1) (await limiter.admit(caller, endpoint)).end(0);
    setTimeout(() => console.log('flushed'), 400);
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');

  await using store = new SqliteStore(file);

  assert.equal(store.peek('user:7').windows.find(({ name }) => name === 'core')?.used, 60);
});

test('a file that is no database, or that cannot be opened, is named', async () => {
  const path = newFile();
  writeFileSync(path, 'no database at all, but long enough to be read as one'.repeat(20));

  assert.throws(() => new SqliteStore(path), {
    name: 'StoreFileError',
    message: `${path} cannot be used: file is not a database`,
  });
  assert.throws(() => new SqliteStore('/nowhere/counts.db'), {
    name: 'StoreFileError',
    message: /^\/nowhere\/counts\.db-lock cannot be used: /,
  });
  assert.equal(readFileSync(path, 'utf8').startsWith('no database'), true);
  rmSync(path);
  await using store = new SqliteStore(path);
  assert.equal(store.size, 0);
});

test('a file that cannot be written is reported, and counting goes on', async () => {
  const file = newFile();
  const { promise: reported, resolve } = Promise.withResolvers<unknown>();
  await using limiter = new RateLimiter({ store: new SqliteStore(file, { flushMs: 5, reportError: resolve }) });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  using other = new DatabaseSync(file);
  other.exec('DROP TABLE callers');

  const first = await limiter.admit(caller, endpoint);
  const error = await reported;
  const second = await limiter.admit(caller, endpoint);
  other.exec(
    'CREATE TABLE callers (key TEXT PRIMARY KEY, over_at INTEGER NOT NULL, windows TEXT NOT NULL) STRICT, WITHOUT ROWID',
  );

  assert.ok(error instanceof Error);
  assert.deepEqual([first.used, second.used], [1, 2]);
});
