import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const SECONDS = Number(process.env.GANTRY_RACE_SECONDS ?? 5);
const CLIENTS = 4;
const MARK = 'a secret of the machine';
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

/** Puts folders, links to `HOST` and FIFOs in each other's place, as fast as a shell can. */
const SWAP = `mkdir -p /x/real/inner /x/away; echo of the container >/x/real/file; echo i >/x/real/inner/file; cd /x
while :; do
  mv real away/r; ln -s HOST real; ln -s ../../../../../../../..HOST away/l; rm real; mkfifo real; rm real
  mv away/l real; rm real; mv away/r real
  mv real/inner away/i; ln -s HOST real/inner; rm real/inner; mv away/i real/inner
  rm -f real/file; ln -s HOST/secret real/file; rm -f real/file; mkfifo real/file; rm -f real/file; echo of the container >real/file
done`;

/** A race with mounts, by a container that may make them. */
const MOUNT = `mkdir -p /x/other /x/real; echo other >/x/other/file; cd /x
while :; do
  mount -t tmpfs none real; umount -l real; mount --bind other real; mount --bind /proc real; umount -l real; umount -l real
  mount --bind /x /v; umount -l /v; mv /x/other /x/o2; mv /x/o2 /x/other
done 2>/dev/null`;

suite('copies while a hostile container swaps links, folders and mounts (CVE-2018-15664, CVE-2019-14271)', () => {
  let engine: TestEngine;
  let outside: string;
  before(async () => {
    outside = mkdtempSync(join(tmpdir(), 'gantry-race-'));
    mkdirSync(join(outside, 'inner'));
    for (const name of ['secret', 'file', 'inner/file']) writeFileSync(join(outside, name), MARK);
    engine = await TestEngine.start();
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(outside, { recursive: true });
  });

  const hostile: readonly [why: string, script: string, host: object][] = [
    ['links and folders', SWAP, {}],
    ['mounts', MOUNT, { Privileged: true, Binds: ['raced:/v'] }],
  ];
  for (const [why, script, HostConfig] of hostile) {
    test(`nothing of the machine is read or written: ${why}`, async () => {
      const before = stateOf(outside);
      const id = await engine.run(['sh', '-c', script.replaceAll('HOST', outside)], { HostConfig });
      const end = Date.now() + SECONDS * 1000;
      const counts = new Map<string, number>();
      const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

      await Promise.all(
        Array.from({ length: CLIENTS }, async (_, client) => {
          for (let turn = client; Date.now() < end; turn += 1) await copy(id, turn, count);
        }),
      );

      assert.deepEqual(stateOf(outside), before);
      assert.ok([...counts.keys()].some((what) => what.endsWith(' 200')));
      assert.equal((await engine.get('/_ping')).status, 200);
      await engine.post(`/containers/${id}/kill`);
      assert.equal((await engine.delete(`/containers/${id}?v=1`)).status, 204);
      await leftNothing();
    });
  }

  /** One of the copies, by turns. What it may answer is any refusal, but nothing of the machine. */
  async function copy(id: string, turn: number, count: (what: string) => void): Promise<void> {
    const paths = [
      '/x',
      '/x/real',
      '/x/real/',
      '/x/real/file',
      '/x/real/inner/',
      '/x/real/inner/file',
      '/v',
      '/x/real/.',
    ];
    const path = paths[turn % paths.length]!;
    const url = `/containers/${id}/archive?path=${path}`;
    const kind = ['GET', 'PUT', 'HEAD', 'GET', 'PUT', 'export', 'changes'][turn % 7]!;
    try {
      const { status, raw } = await answer(kind, id, url);
      assert.ok(!raw.includes(MARK), `${kind} ${path} has told a secret of the machine`);
      count(`${kind} ${status}`);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      count(`${kind} broken`); // a stream whose files went away
    }
  }

  async function answer(kind: string, id: string, url: string): Promise<{ status: number; raw: Buffer }> {
    if (kind === 'PUT') return await engine.request('PUT', url, { ...TAR, body: hostileArchive });
    if (kind === 'GET' || kind === 'HEAD') return await engine.request(kind, url);
    return await engine.get(`/containers/${id}/${kind}`);
  }

  async function leftNothing(): Promise<void> {
    const merged = (): boolean => readFileSync(`/proc/${engine.pid}/mountinfo`, 'utf8').includes('/writable/');
    while (merged()) await setTimeout(20);
  }
});

/** Folders and files whose names are being swapped meanwhile. */
const hostileArchive = new TarWriter()
  .add({ name: 'real/', type: 'directory', mode: 0o711, uid: 99 })
  .add({ name: 'real/inner/', type: 'directory', mode: 0o711, uid: 99 })
  .add({ name: 'real/inner/file', content: 'written', mode: 0o600, uid: 99 })
  .add({ name: 'inner/file', content: 'written', mode: 0o600, uid: 99 })
  .add({ name: 'file', content: 'written', mode: 0o600, uid: 99 })
  .add({ name: 'secret', content: 'written', mode: 0o600, uid: 99 })
  .end();

/** Names, contents, owners, modes and times. */
function stateOf(folder: string): unknown {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  const { mode, uid, mtimeMs } = statSync(folder);
  return names
    .map((name): unknown => {
      const stat = lstatSync(join(folder, name));
      const content = stat.isFile() ? readFileSync(join(folder, name), 'utf8') : '';
      return [name, stat.mode, stat.uid, stat.gid, stat.mtimeMs, content];
    })
    .concat([[mode, uid, mtimeMs]]);
}
