import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { gantry } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { packContext } from './context.ts';

type Files = Readonly<Record<string, string>>;

function folderOf(files: Files): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'gantry-context-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

/** The names that are sent, sorted. */
async function sent(folder: string, file?: string): Promise<string[]> {
  const { stream, ended } = await packContext(folder, file);
  const [archive] = await Promise.all([buffer(stream), ended]);
  const names = [...tarList(archive).keys()].map((name) => name.replace(/^\.\//, '').replace(/\/$/, ''));
  return names.filter((name) => name !== '' && name !== '.').toSorted();
}

const FILES: Files = {
  Dockerfile: 'FROM scratch',
  a: '1',
  'logs/x.log': 'x',
  'logs/keep.log': 'k',
  'deep/er/y.log': 'y',
};

const rows: [string, Files, string | undefined, string[]][] = [
  [
    'no ignore file',
    {},
    undefined,
    ['Dockerfile', 'a', 'deep', 'deep/er', 'deep/er/y.log', 'logs', 'logs/keep.log', 'logs/x.log'],
  ],
  [
    'patterns',
    { '.dockerignore': 'logs\n**/*.log\n' },
    undefined,
    ['.dockerignore', 'Dockerfile', 'a', 'deep', 'deep/er'],
  ],
  [
    'exceptions',
    { '.dockerignore': '*\n!logs/keep.log\n' },
    undefined,
    ['.dockerignore', 'Dockerfile', 'logs/keep.log'],
  ],
  [
    'a file of its own, which goes before',
    { '.buildignore': '*', '.dockerignore': 'a' },
    undefined,
    ['.buildignore', '.dockerignore', 'Dockerfile'],
  ],
  [
    'a Buildfile in an ignored folder',
    { '.dockerignore': '*', 'sub/Other': 'FROM scratch' },
    './sub/Other',
    ['.dockerignore', 'sub/Other'],
  ],
  [
    'a pattern that is none, which the engine refuses',
    { '.dockerignore': '[a' },
    undefined,
    ['.dockerignore', 'Dockerfile', 'a', 'deep', 'deep/er', 'deep/er/y.log', 'logs', 'logs/keep.log', 'logs/x.log'],
  ],
];
for (const [what, more, file, names] of rows) {
  test(`a context is sent by ${what}`, async () => {
    using folder = folderOf({ ...FILES, ...more });

    assert.deepEqual(await sent(folder.path, file), names);
  });
}

test('names of any bytes are sent, and links as links', async () => {
  using folder = folderOf({ '.dockerignore': 'none', '-x': '', 'a\nb': '', ' c ': '', 'd\\e': '' });
  execFileSync('sh', ['-c', String.raw`touch "$1/$(printf 'f\377')"`, 'sh', folder.path]);
  symlinkSync('/etc', join(folder.path, 'link'));

  const { stream, ended } = await packContext(folder.path, undefined);
  const [archive] = await Promise.all([buffer(stream), ended]);

  assert.equal(tarList(archive).size, 7);
  assert.ok(archive.includes(Buffer.from('./f\xff', 'latin1')));
});

test('a folder that is missing, or goes away, ends the client with the reason', async () => {
  using folder = folderOf({ '.dockerignore': 'x', 'a/b': '' });
  const { stream, ended } = await packContext(folder.path, undefined);
  ended.catch(() => undefined);
  rmSync(join(folder.path, 'a'), { recursive: true });

  await Promise.allSettled([buffer(stream), ended]);
  await assert.rejects((await packContext(join(folder.path, 'none'), undefined)).ended, /none/);
});

test('files that the client leaves out make no other image', async () => {
  await using engine = await TestEngine.start();
  const dockerfile = 'FROM busybox\nCOPY . /in\nRUN cd /in && find . | sort\n';
  using folder = folderOf({ ...FILES, Dockerfile: dockerfile, '.dockerignore': '*\n!logs\n**/x.log\nDockerfile\n' });

  const ours = await gantry(engine, ['build', '--network=none', folder.path]);
  const env = { ...process.env, DOCKER_HOST: `unix://${engine.socketPath}`, DOCKER_BUILDKIT: '0' };
  const stdout = execFileSync('docker', ['build', '--no-cache', folder.path], {
    env,
    encoding: 'utf8',
    stdio: 'pipe',
  });

  assert.equal(ours.code, 0, ours.stderr + ours.stdout);
  const found = (text: string): string[] => text.split('\n').filter((line) => /^\.(\/|$)/.test(line));
  assert.deepEqual(found(ours.stdout), ['.', './logs', './logs/keep.log'], ours.stdout);
  assert.deepEqual(found(stdout), found(ours.stdout));
});
