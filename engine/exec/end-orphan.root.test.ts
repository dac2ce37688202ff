import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { ExecInspect } from '@gantry/engine/exec/schema.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('execs that something goes wrong with', { concurrency: false }, () => {
  let engine: TestEngine;
  let container: string;

  /** The exec root is a small disk of its own. */
  before(async () => {
    engine = await TestEngine.start();
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', execRoot()]);
    await engine.startAgain();
    container = await engine.run(['sleep', '100000']);
  });
  after(async () => {
    await engine.delete(`/containers/${container}?force=1`);
    await engine.kill('SIGTERM');
    execFileSync('umount', [execRoot()]);
    await engine.startAgain();
    await engine[Symbol.asyncDispose]();
  });

  const execRoot = (): string => join(engine.directory, 'exec');

  async function create(command: readonly string[]): Promise<string> {
    const body = { Cmd: command, AttachStdout: true, AttachStderr: true };
    return (await engine.post<{ Id: string }>(`/containers/${container}/exec`, body)).body.Id;
  }

  async function inspect(id: string): Promise<ExecInspect> {
    return (await engine.get<ExecInspect>(`/exec/${id}/json`)).body;
  }

  async function ended(id: string): Promise<ExecInspect> {
    for (;;) {
      const exec = await inspect(id);
      if (!exec.Running) return exec;
      await setTimeout(20);
    }
  }

  function fill(): Disposable {
    const path = join(execRoot(), 'filler');
    const file = openSync(path, 'w');
    try {
      for (;;) writeSync(file, Buffer.alloc(4096));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    } finally {
      closeSync(file);
    }
    return { [Symbol.dispose]: () => rmSync(path) };
  }

  for (const [when, daemonLives] of [
    ['while the daemon lives', true],
    ['while there is no daemon', false],
  ] as const) {
    test(`a shim of an exec that is killed ${when} takes its process with it`, async () => {
      const id = await create(['sleep', '100000']);
      await engine.post(`/exec/${id}/start`, { Detach: true });
      const { Pid } = await inspect(id);
      assert.ok(existsSync(`/proc/${Pid}`));

      if (!daemonLives) await engine.kill('SIGKILL');
      process.kill(shimOf(Pid), 'SIGKILL');
      if (!daemonLives) await engine.startAgain();

      const { ExitCode, Running } = await ended(id);
      assert.deepEqual([ExitCode, Running], [137, false]);
      while (existsSync(`/proc/${Pid}`)) await setTimeout(10);
      assert.equal((await engine.get<Inspect>(`/containers/${container}/json`)).body.State.Running, true);
    });
  }

  test('an exec that finds no space says so to its client, and can be repeated when there is some', async () => {
    const [attached, detached] = [await create(['echo', 'hello']), await create(['echo', 'hello'])];
    {
      using _full = fill();
      const { socket } = await engine.hijack(`/exec/${attached}/start`, { body: {} });
      assert.match(await text(socket), /no space left on device/);
      const answer = await engine.post<{ message: string }>(`/exec/${detached}/start`, { Detach: true });
      assert.equal(answer.status, 500);
      assert.match(answer.body.message, /no space left on device/);
    }

    assert.equal((await ended(attached)).ExitCode, 126);
    const { socket } = await engine.hijack(`/exec/${await create(['echo', 'hello'])}/start`, { body: {} });
    assert.match(await text(socket), /hello/);
  });

  test('a container that ends on a full exec root is known with its code, also by the next daemon', async () => {
    const id = await engine.run(['sleep', '100000']);
    const { Pid } = (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
    await engine.kill('SIGKILL');
    {
      using _full = fill();
      process.kill(Pid, 'SIGTERM');
      process.kill(Pid, 'SIGKILL');
      while (existsSync(`/proc/${Pid}`)) await setTimeout(10);
    }
    await engine.startAgain();

    assert.equal(await engine.wait(id), 137);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });
});
