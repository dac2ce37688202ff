import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const BACKUP = join(dirname(import.meta.dirname), 'backup.ts');

type Listed = { Id: string; Names: string[]; State: string }[];

function backup(engine: TestEngine, file: string): void {
  execFileSync(process.execPath, [BACKUP, `--data-root=${engine.dataRoot}`, file], { stdio: 'pipe' });
}

/** Moves all files of the database away; the function moves them back. */
function keepDatabase(engine: TestEngine): () => void {
  const names = ['gantry.db', 'gantry.db-wal', 'gantry.db-shm', 'database.json'];
  const kept = join(engine.directory, 'kept');
  mkdirSync(kept, { recursive: true });
  for (const name of names.filter((one) => existsSync(join(engine.dataRoot, one)))) {
    copyFileSync(join(engine.dataRoot, name), join(kept, name));
  }
  return () => {
    for (const name of names) {
      rmSync(join(engine.dataRoot, name), { force: true });
      if (existsSync(join(kept, name))) renameSync(join(kept, name), join(engine.dataRoot, name));
    }
  };
}

suite('a database that is not the right one', { concurrency: false }, () => {
  let engine: TestEngine;
  let running: string;
  before(async () => {
    engine = await TestEngine.start();
    running = await engine.run(['sh', '-c', 'echo here; sleep 600'], { HostConfig: { Binds: ['data:/v'] } }, 'steady');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const path = (name: string): string => join(engine.dataRoot, name);

  async function names(): Promise<string[]> {
    const { body } = await engine.get<Listed>('/containers/json?all=1');
    return body.flatMap(({ Names }) => Names).toSorted();
  }

  for (const [what, signal, damage, reason] of [
    ['missing', 'SIGTERM', () => rmSync(path('gantry.db')), /gantry\.db is missing or empty/],
    ['empty', 'SIGTERM', () => writeFileSync(path('gantry.db'), ''), /gantry\.db is missing or empty/],
    [
      'not a database',
      'SIGTERM',
      () => writeFileSync(path('gantry.db'), 'x'.repeat(8192)),
      /gantry\.db is not a database/,
    ],
    ['without its log', 'SIGKILL', () => rmSync(path('gantry.db-wal')), /gantry\.db-wal is missing/],
    ["another program's", 'SIGTERM', () => foreign('CREATE TABLE theirs (x)'), /is not Gantry's/],
    ["another daemon's", 'SIGTERM', () => change("UPDATE identity SET id = 'another'"), /belongs to another data root/],
    ['older', 'SIGTERM', () => change('UPDATE identity SET generation = generation - 1'), /is older than the database/],
  ] as const) {
    test(`is refused when it is ${what}, and nothing is touched`, async () => {
      await engine.kill(signal);
      const putBack = keepDatabase(engine);
      const before = globSync(`${engine.dataRoot}/{layers,writable,containers,volumes,blobs}/**`);
      damage();

      await assert.rejects(engine.startAgain(), (error: Error) => {
        assert.match(error.message, reason);
        assert.match(error.message, /"gantry backup"/);
        assert.doesNotMatch(error.message, /\n    at /, 'a stack trace is no advice');
        return true;
      });

      assert.deepEqual(globSync(`${engine.dataRoot}/{layers,writable,containers,volumes,blobs}/**`), before);
      putBack();
      await engine.startAgain();
      assert.deepEqual(await names(), ['/steady']);
      assert.equal((await engine.output(running)).stdout, 'here\n');
    });
  }

  function foreign(sql: string): void {
    rmSync(path('gantry.db'));
    change(sql);
  }

  function change(sql: string): void {
    const db = new DatabaseSync(path('gantry.db'));
    db.exec(sql);
    db.close();
  }

  test('is accepted when it is a backup, which is made while the daemon works', async () => {
    const file = join(engine.directory, 'backup.db');
    const working = Promise.all(Array.from({ length: 20 }, async () => await engine.create(['true'])));
    backup(engine, file);
    const later = await working;
    for (const id of later) await engine.delete(`/containers/${id}`);
    const unknown = await engine.create(['true'], {}, 'later');
    const idle = await engine.run(['sleep', '600'], {}, 'later-and-running');
    await engine.kill('SIGKILL');

    copyFileSync(file, path('gantry.db')); // the log of the former one still exists
    await engine.startAgain();

    assert.ok((await names()).includes('/steady'));
    assert.ok(!(await names()).includes('/later'));
    assert.equal((await engine.output(running)).stdout, 'here\n');
    assert.equal((await engine.get(`/volumes/data`)).status, 200);
    for (const id of [unknown, idle]) {
      assert.equal(
        globSync(`${engine.dataRoot}/lost-and-found/*/writable/${id}`).length,
        1,
        'what was written is kept',
      );
    }
    assert.equal(globSync(`${engine.dataRoot}/lost-and-found/*/containers/${idle}/*-json.log`).length, 1);
    assert.match(engine.log, /the database is a backup that was restored/);
    await engine.kill('SIGTERM');
    await engine.startAgain();
    assert.ok((await names()).includes('/steady'));
  });

  test('is accepted in an empty data root', async () => {
    await using other = await TestEngine.start({ image: false });
    await other.kill('SIGTERM');
    for (const file of globSync(`${other.dataRoot}/gantry.db*`)) rmSync(file);

    await other.startAgain();

    assert.equal((await other.get('/_ping')).status, 200);
  });
});

test('a failed backup names its reason, and a backup is for root alone', async () => {
  await using engine = await TestEngine.start({ image: false });
  const file = join(engine.directory, 'backup.db');

  backup(engine, file);
  backup(engine, file);

  assert.equal(execFileSync('stat', ['-c', '%a', file]).toString(), '600\n');
  assert.deepEqual(globSync(`${file}?*`), []);
  assert.equal(readFileSync(file).subarray(0, 15).toString(), 'SQLite format 3');
  assert.throws(
    () => execFileSync(process.execPath, [BACKUP, `--data-root=${engine.directory}`, file], { stdio: 'pipe' }),
    /there is no database/,
  );
});
