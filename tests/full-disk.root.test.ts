import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MB = 1024 * 1024;

suite('a full disk', { concurrency: false }, () => {
  let engine: TestEngine;

  /** Moves the daemon to a disk of its own. */
  before(async () => {
    engine = await TestEngine.start({ image: false });
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'none', engine.dataRoot]);
    await engine.startAgain();
    await engine.loadBusybox();
  });
  after(async () => {
    for (const { Id } of (await engine.get<{ Id: string }[]>('/containers/json?all=1')).body) {
      await engine.delete(`/containers/${Id}?force=1`);
    }
    await engine.kill('SIGTERM');
    execFileSync('umount', [engine.dataRoot]);
    await engine.startAgain();
    await engine[Symbol.asyncDispose]();
  });

  const filler = (): string => join(engine.dataRoot, 'filler');
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(engine.dataRoot);
    return bavail * bsize;
  };

  /** Takes all space that is left, to the last page, also while others write. */
  function fill(): Disposable {
    const file = openSync(filler(), 'w');
    try {
      for (;;) writeSync(file, Buffer.alloc(64 * 1024));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    } finally {
      closeSync(file);
    }
    return { [Symbol.dispose]: () => rmSync(filler()) };
  }

  async function listed(path: string): Promise<number> {
    return (await engine.get<unknown[]>(path)).body.length;
  }

  async function stateOf(id: string): Promise<Inspect['State']> {
    return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
  }

  test('a load that does not fit says so, and leaves nothing', async () => {
    const before = freeBytes();
    const layer = new TarWriter().add({ name: 'big', content: Buffer.alloc(40 * MB, 1) }).end();

    const { status, body } = await engine.post<{ message: string }>(
      '/images/load?quiet=1',
      imageArchive(layer, ['big:1']),
    );

    assert.equal(status, 500);
    assert.match(body.message, /no space left on device/);
    assert.equal(await listed('/images/json?all=1'), 1);
    while (freeBytes() < before - MB / 4) await setTimeout(10); // it is removed in the background
  });

  test('a container can be created and removed', async () => {
    using _full = fill();

    const id = await engine.create(['true']);

    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
    assert.equal(await listed('/containers/json?all=1'), 0);
  });

  test('a container that cannot be started says so, and starts when there is space again', async () => {
    const id = await engine.create(['true']);
    {
      using _full = fill();
      const { status, body } = await engine.post<{ message: string }>(`/containers/${id}/start`);
      assert.equal(status, 500);
      assert.match(body.message, /no space left on device/);
      assert.equal((await stateOf(id)).Status, 'created');
    }

    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    assert.equal(await engine.wait(id), 0);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });

  test('a container goes on, and its end is known when there is space again', async () => {
    const script = 'while :; do echo line; sleep 0.02; done';
    const id = await engine.run(['sh', '-c', script]);
    {
      using _full = fill();
      await setTimeout(200); // it logs into the full disk meanwhile
      assert.equal((await stateOf(id)).Running, true);
      process.kill((await stateOf(id)).Pid, 'SIGKILL');
      while ((await stateOf(id)).Running) await setTimeout(20);
    }

    assert.equal((await stateOf(id)).ExitCode, 137);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });

  test('a daemon that finds its disk full starts, or says why not, and loses nothing', async () => {
    const id = await engine.create(['true'], {}, 'kept');
    {
      using _full = fill();
      await engine.kill('SIGKILL');
      try {
        await engine.startAgain();
      } catch (error) {
        assert.match(String(error), /no space left on device|disk is full/);
      }
      await engine.kill('SIGKILL');
    }
    await engine.startAgain();

    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    assert.equal(await engine.wait(id), 0);
  });
});
