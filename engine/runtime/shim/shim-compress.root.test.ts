import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

import { OUTPUT, payload, seen, TestBundle } from '@gantry/testing/test-bundle.ts';

import { hasCode } from '../../lib/errors.ts';

const LOG = { maxBytes: 50_000, maxFiles: 20, compress: true };

function numbers(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\n`).join('');
}

function filesOf({ logPath, directory }: TestBundle): string[] {
  return readdirSync(directory).filter((name) => name.startsWith(basename(logPath)));
}

function linesOf(text: string): string {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { log: string }).log).join('');
}

/** Its text; empty while a rotation is about to give the next file its name. */
function presentFile({ logPath }: TestBundle): string {
  try {
    return readFileSync(logPath, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}

/** All but the present file, when the present one ends with `last` and each other is compressed. */
async function compressed(bundle: TestBundle, last: string): Promise<string[]> {
  const deadline = Date.now() + 120_000;
  const isLeft = (name: string): boolean => name !== basename(bundle.logPath) && !/\.\d+\.gz$/.test(name);
  const isWritten = (): boolean => linesOf(presentFile(bundle)).endsWith(`${last}\n`);
  // In this order: after the last line nothing more is rotated.
  while (!isWritten() || filesOf(bundle).some(isLeft)) {
    assert.ok(Date.now() < deadline, filesOf(bundle).join());
    await setTimeout(20);
  }
  const count = filesOf(bundle).length - 1;
  return Array.from({ length: count }, (_, index) => `${bundle.logPath}.${count - index}.gz`);
}

test('rotated files are compressed, and readers of the log get their lines', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 7000; echo ready; read x'], { openStdin: true, log: LOG });
  const live = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();
  await seen(live, 'ready');

  const packed = await compressed(bundle, 'ready');
  const logged = await payload(await bundle.attach(shim, { ...OUTPUT, logs: true, stream: false }));

  const kept = [
    ...packed.map((name) => gunzipSync(readFileSync(name)).toString()),
    readFileSync(bundle.logPath, 'utf8'),
  ];
  assert.ok(packed.length >= 5);
  assert.equal(kept.map(linesOf).join(''), `${numbers(1, 7000)}ready\n`);
  assert.equal(String(logged), `${numbers(1, 7000)}ready\n`);
  live.end('\n');
  await shim.exited;
});

test('files beyond the wanted number go, compressed or not', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 7000; read x'], { openStdin: true, log: { ...LOG, maxFiles: 3 } });
  const live = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();
  await seen(live, '7000');

  const packed = await compressed(bundle, '7000');

  assert.equal(packed.length, 2);
  const kept = [
    ...packed.map((name) => gunzipSync(readFileSync(name)).toString()),
    readFileSync(bundle.logPath, 'utf8'),
  ];
  const lines = kept.map(linesOf).join('');
  assert.equal(lines, numbers(7001 - lines.split('\n').length + 1, 7000));
  live.end('\n');
  await shim.exited;
});

test('a file that a killed shim compressed by half is compressed by the next one', async () => {
  await using bundle = new TestBundle();
  const entry = '{"log":"1\\n","stream":"stdout","time":"2026-11-21T01:00:00Z"}\n';
  writeFileSync(bundle.logPath, entry);
  renameSync(bundle.logPath, `${bundle.logPath}.1`);
  writeFileSync(`${bundle.logPath}.gz.new`, 'half');
  const shim = await bundle.shim(['sh', '-c', 'echo 2; read x'], { openStdin: true, log: LOG });
  const live = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();

  assert.deepEqual(await compressed(bundle, '2'), [`${bundle.logPath}.1.gz`]);
  assert.equal(gunzipSync(readFileSync(`${bundle.logPath}.1.gz`)).toString(), entry);
  live.end('\n');
  await shim.exited;
});

test('where no new file can be made the old one goes on, under its name, and is rotated later', async () => {
  await using bundle = new TestBundle();
  mkdirSync(`${bundle.logPath}.new`);
  const shim = await bundle.shim(['sh', '-c', 'seq 2000; read x; seq 2000'], {
    openStdin: true,
    log: { maxBytes: 100_000, maxFiles: 3 },
  });
  const live = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();
  await seen(live, '\n2000\n');
  const isRotated = existsSync(`${bundle.logPath}.1`);
  rmdirSync(`${bundle.logPath}.new`);
  live.end('\n');
  await shim.exited;

  assert.equal(isRotated, false);
  // How long the lines are depends on their times: the last file may have been rotated once more.
  const files = ['.2', '.1', ''].map((ending) => bundle.logPath + ending).filter((file) => existsSync(file));
  const kept = files.map((file) => readFileSync(file, 'utf8'));
  assert.equal(kept.map(linesOf).join(''), numbers(1, 2000).repeat(2));
});
