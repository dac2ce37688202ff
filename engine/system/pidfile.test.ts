import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Pidfile } from './pidfile.ts';

const temporary = async (): ReturnType<typeof mkdtempDisposable> =>
  await mkdtempDisposable(join(tmpdir(), 'gantry-pid-'));

test('it names this process, and is gone at the end', async () => {
  await using folder = await temporary();
  const path = join(folder.path, 'sub/pid');
  {
    using _file = new Pidfile(path);
    assert.equal(readFileSync(path, 'utf8'), `${process.pid}\n`);
  }
  assert.equal(existsSync(path), false);
});

test('that of a living process is left alone, also at the end', async () => {
  await using folder = await temporary();
  const path = join(folder.path, 'pid');
  const other = spawn('sleep', ['60']);
  try {
    writeFileSync(path, `${other.pid}\n`);

    assert.throws(() => new Pidfile(path), new RegExp(`names process ${other.pid}, which is running`));
    assert.equal(readFileSync(path, 'utf8'), `${other.pid}\n`);
  } finally {
    other.kill();
    await once(other, 'exit');
  }
});

test('that of a process which is younger than the file is taken over: it only got the same number', async () => {
  await using folder = await temporary();
  const path = join(folder.path, 'pid');
  const other = spawn('sleep', ['60']);
  try {
    writeFileSync(path, `${other.pid}\n`);
    utimesSync(path, new Date(), Date.now() / 1000 - 3600);
    using _file = new Pidfile(path);

    assert.equal(readFileSync(path, 'utf8'), `${process.pid}\n`);
  } finally {
    other.kill();
    await once(other, 'exit');
  }
});

for (const [what, content] of [
  ['of a dead process', String(spawnSync('true').pid)],
  ['with nothing in it', ''],
  ['with other text', 'busy\n'],
  ['with our own number', String(process.pid)],
] as const) {
  test(`a file ${what} is taken over`, async () => {
    await using folder = await temporary();
    const path = join(folder.path, 'pid');
    writeFileSync(path, content);
    using _file = new Pidfile(path);

    assert.equal(readFileSync(path, 'utf8'), `${process.pid}\n`);
  });
}
