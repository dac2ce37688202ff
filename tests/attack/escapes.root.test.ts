import assert from 'node:assert/strict';
import { readdirSync, writeFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { execOf, outputOf } from '@gantry/testing/shell-lines.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** On the machine alone; a container that reads it has escaped. */
const MARK = join(tmpdir(), `gantry-mark-${process.pid}`);

suite('ways out of containers that were advisories for other engines', () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    writeFileSync(MARK, 'of the machine\n');
  });
  after(async () => {
    rmSync(MARK);
    await engine[Symbol.asyncDispose]();
  });

  async function loadImage(name: string, entries: readonly TarEntry[], config: object = {}): Promise<void> {
    const tar = new TarWriter();
    for (const entry of entries) tar.add(entry);
    const { status, raw } = await engine.post(
      '/images/load?quiet=1',
      imageArchive([busyboxLayer(), tar.end()], [name], config),
    );
    assert.equal(status, 200, raw.toString());
  }

  /** Open descriptors of `ls -l /proc/self/fd` beside the three streams and the folder that is listed. */
  function othersOf(listing: string): string[] {
    const rows = listing.matchAll(/ (\d+) -> (\S+)/g);
    return [...rows].filter(([, fd, to]) => Number(fd) > 2 && !/^\/proc\/\d+\/fd$/.test(to!)).map(([row]) => row);
  }

  for (const Tty of [false, true]) {
    test(`a process has no descriptor of the engine (CVE-2024-21626), terminal: ${Tty}`, async () => {
      const id = await engine.run(['ls', '-l', '/proc/self/fd'], { Tty });
      await engine.wait(id);
      const listing = (await engine.get(`/containers/${id}/logs?stdout=1`)).raw.toString();

      assert.match(listing, / 0 -> /);
      assert.deepEqual(othersOf(listing), []);
      await engine.delete(`/containers/${id}`);
    });
  }

  test('an exec has no descriptor of the engine either', async () => {
    const id = await engine.run(['sleep', '1000']);

    const listing = await execOf(engine, id, 'exec ls -l /proc/self/fd');

    assert.match(listing, / 0 -> /);
    assert.deepEqual(othersOf(listing), []);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a working directory that names a descriptor does not lead out (CVE-2024-21626)', async () => {
    const numbers = Array.from({ length: 18 }, (_, index) => index + 3);

    const seen = await Promise.all(
      numbers.map(async (number) => {
        const id = await engine.create(['sh', '-c', `cat ../../../../../..${MARK} ..${MARK} ${MARK}`], {
          WorkingDir: `/proc/self/fd/${number}`,
        });
        const { status } = await engine.post(`/containers/${id}/start`);
        if (status === 204) await engine.wait(id);
        const { stdout } = await engine.output(id);
        await engine.delete(`/containers/${id}?force=1`);
        return stdout;
      }),
    );

    assert.deepEqual(
      seen,
      numbers.map(() => ''),
    );
  });

  test('no inheritable capability lies outside the bounding set of nobody (CVE-2022-24769, -27650, -29162)', async () => {
    const id = await engine.run(['sleep', '1000'], { HostConfig: { CapAdd: ['NET_ADMIN'] } });

    for (const body of [{}, { User: '1000' }, { Privileged: true }]) {
      assert.match(await execOf(engine, id, 'grep CapInh /proc/self/status', body), /CapInh:\s+0000000000000000/);
    }
    assert.match(await outputOf(engine, 'grep CapInh /proc/self/status'), /CapInh:\s+0000000000000000/);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a volume of an image is copied from the image, wherever its links lead (CVE-2022-23648)', async () => {
    await loadImage(
      'links:1',
      [
        { name: 'a', type: 'symlink', linkName: `../../../../../../../..${tmpdir()}` },
        { name: 'b', type: 'symlink', linkName: '/proc/1/root/etc' },
        { name: 'c/', type: 'directory' },
        { name: 'c/inside', type: 'symlink', linkName: MARK },
      ],
      { Volumes: { '/a': {}, '/b': {}, '/c': {} } },
    );

    const id = await engine.create(['sh', '-c', `ls -A /a /b; cat /c/inside; cat ${MARK}`], { Image: 'links:1' });
    const { status } = await engine.post(`/containers/${id}/start`);
    if (status === 204) await engine.wait(id);
    const { stdout } = await engine.output(id);

    assert.doesNotMatch(stdout, /gantry-mark|of the machine|shadow-|machine-id/);
    const { body } = await engine.get<{ Mounts: { Source: string }[] }>(`/containers/${id}/json`);
    for (const { Source } of body.Mounts)
      assert.deepEqual(
        readdirSync(Source).filter((name) => /gantry|machine-id/.test(name)),
        [],
      );
    await engine.delete(`/containers/${id}?force=1&v=1`);
  });

  test('links that a neighbour swaps in a shared volume do not carry a mount out (CVE-2021-30465)', async () => {
    const swap = 'cd /v; mkdir -p t; ln -s / l; while :; do mv t x; mv l t; mv t l; mv x t; done';
    const swapper = await engine.run(['sh', '-c', swap], { HostConfig: { Binds: ['swapped:/v'] } });
    const host = { Binds: ['swapped:/v', 'inner:/v/t/d'] };

    for (let round = 0; round < 15; round += 1) {
      const id = await engine.create(['cat', `/v/t${MARK}`, MARK], { HostConfig: host });
      const { status } = await engine.post(`/containers/${id}/start`);
      if (status === 204) await engine.wait(id);
      assert.equal((await engine.output(id)).stdout, '');
      await engine.delete(`/containers/${id}?force=1`);
    }

    const mounts = await engine.onHost(['cat', '/proc/self/mountinfo']);
    assert.doesNotMatch(mounts, /inner/);
    await engine.delete(`/containers/${swapper}?force=1`);
    for (const name of ['swapped', 'inner']) await engine.delete(`/volumes/${name}`);
  });

  test('a namespace of users, in which root could mount cgroups, cannot be made (CVE-2022-0492)', async () => {
    const found = await outputOf(engine, 'unshare -Ur true; echo $?; mount -t cgroup -o memory c /tmp; echo $?');

    assert.doesNotMatch(found, /^0$/m);
    assert.match(found, /not permitted|permission denied/i);
  });

  test('the list of processes is made by the machine, not by a program of the image (CVE-2022-1227)', async () => {
    const fake = { mode: 0o4755, content: '#!/bin/sh\ntouch /ran; echo stolen\n' };
    await loadImage('fake-ps:1', [
      { name: 'bin/ps', ...fake },
      { name: 'usr/bin/ps', ...fake },
      { name: 'usr/bin/nsenter', ...fake },
    ]);
    const id = await engine.run(['sleep', '1000'], { Image: 'fake-ps:1' });

    const { status, raw } = await engine.get(`/containers/${id}/top`);

    assert.equal(status, 200);
    assert.match(raw.toString(), /sleep/);
    assert.doesNotMatch(await execOf(engine, id, 'ls /'), /\bran\b/);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('files of /proc and /sys that show or change the machine are masked or read-only (CVE-2023-27561)', async () => {
    const found = await outputOf(
      engine,
      'for f in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug; do [ -e $f ] && head -c 10 $f | wc -c; done;' +
        'for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper; do (echo x >$f) 2>/dev/null && echo WRITTEN $f; done; ls /proc/acpi /sys/firmware 2>/dev/null | grep -v : ',
    );

    assert.doesNotMatch(found, /[1-9]|WRITTEN/);
  });

  test('masks hold where the image has made /proc or /dev/null something else (CVE-2025-31133, CVE-2023-28642)', async () => {
    await loadImage('odd-dev:1', [
      { name: 'dev/null', type: 'symlink', linkName: '/proc/sys/kernel/core_pattern' },
      { name: 'dev/console', type: 'symlink', linkName: '/proc/sysrq-trigger' },
    ]);
    const found = await outputOf(
      engine,
      'ls -l /dev/null; (echo x >/proc/sys/kernel/core_pattern) 2>/dev/null && echo WRITTEN; head -c 1 /proc/kcore | wc -c',
      {
        Image: 'odd-dev:1',
        Tty: false,
      },
    );
    assert.match(found, /crw-rw-rw-/);
    assert.doesNotMatch(found, /WRITTEN|^1$/m);

    await loadImage('odd-proc:1', [
      { name: 'real/', type: 'directory' },
      { name: '.wh.proc' },
      { name: 'proc', type: 'symlink', linkName: 'real' },
    ]);
    const id = await engine.create(['sh', '-c', 'echo x >/proc/sys/kernel/core_pattern && echo WRITTEN'], {
      Image: 'odd-proc:1',
    });
    const { status } = await engine.post(`/containers/${id}/start`);
    if (status === 204) await engine.wait(id);
    assert.doesNotMatch((await engine.output(id)).stdout, /WRITTEN/);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('clients that attach, resize and leave cost nothing for ever (CVE-2022-23471, CVE-2025-64329)', async () => {
    const id = await engine.run(['cat'], { Tty: true, OpenStdin: true });
    const held = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
    const visit = async (): Promise<void> => {
      const { socket } = await engine.hijack(`/containers/${id}/attach?stream=1&stdin=1&stdout=1&logs=1`);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      await engine.post(`/containers/${id}/resize?h=20&w=60`);
      socket.destroy();
      await closed;
    };
    await visit();
    const before = held();

    for (let round = 0; round < 20; round += 1) await Promise.all(Array.from({ length: 10 }, visit));

    await engine.post(`/containers/${id}/resize?h=21&w=61`);
    await engine.delete(`/containers/${id}?force=1`);
    const deadline = performance.now() + 120_000;
    while (held() > before + 12) {
      assert.ok(performance.now() < deadline, `${before} descriptors before, ${held()} after 200 visits`);
      await setTimeout(20);
    }
  });
});
