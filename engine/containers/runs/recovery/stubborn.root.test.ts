import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

async function stateOf(engine: TestEngine, id: string): Promise<Inspect['State']> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
}

/** Lines of the log about `recover a container` and `ready`, in its order. */
function openedAndGaveUp(engine: TestEngine): string[] {
  return engine.log.split('\n').flatMap((line) => /"ready"|its shim does not answer/.exec(line) ?? []);
}

test('a shim that does not answer holds up nobody, is shown as such, and is taken up when it answers', async () => {
  await using engine = await TestEngine.start();
  const stuck = await engine.run(['sleep', '600']);
  const other = await engine.run(['sleep', '600']);
  const shim = shimOf((await stateOf(engine, stuck)).Pid);
  await engine.kill('SIGKILL');
  process.kill(shim, 'SIGSTOP');
  using _awake = { [Symbol.dispose]: () => void process.kill(shim, 'SIGCONT') };

  await engine.startAgain();

  assert.equal((await engine.post(`/containers/${other}/stop?t=0`)).status, 204);
  for (const answer of [
    await engine.post<Message>(`/containers/${stuck}/stop?t=0`),
    await engine.delete<Message>(`/containers/${stuck}?force=1`),
  ]) {
    assert.equal(answer.status, 500);
    assert.match(answer.body.message, /cannot be reached: /);
  }
  while ((await stateOf(engine, stuck)).Error === '') await setTimeout(50);
  assert.match((await stateOf(engine, stuck)).Error, /its shim does not answer/);
  assert.deepEqual(openedAndGaveUp(engine).slice(0, 3), ['"ready"', '"ready"', 'its shim does not answer']);

  process.kill(shim, 'SIGCONT');
  while ((await stateOf(engine, stuck)).Error !== '') await setTimeout(50);
  assert.equal((await engine.post(`/containers/${stuck}/stop?t=0`)).status, 204);
});

/** A file of settings that name this runtime, or none. */
function settings(folder: string, runtime?: { name: string; path: string }): string {
  const file = join(folder, 'daemon.json');
  const runtimes = runtime === undefined ? {} : { [runtime.name]: { path: runtime.path } };
  writeFileSync(file, JSON.stringify({ runtimes }));
  return file;
}

test('a container has ended when its runtime is not configured any more, and its shim died', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-settings-'));
  const file = settings(place.path, { name: 'gone', path: 'runc' });
  await using engine = await TestEngine.start({ flags: [`--config-file=${file}`] });
  const id = await engine.run(['sleep', '600'], { HostConfig: { Runtime: 'gone' } });
  const shim = shimOf((await stateOf(engine, id)).Pid);
  await engine.kill('SIGKILL');
  process.kill(shim, 'SIGKILL');
  settings(place.path);

  await engine.startAgain();

  assert.equal(await engine.wait(id), 137);
  const again = await engine.post<Message>(`/containers/${id}/start`);
  assert.match(again.body.message, /[Uu]nknown runtime specified gone/);
  assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
});

test('a start that hangs in its runtime holds up nobody', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-settings-'));
  const path = join(place.path, 'slow');
  const pidfile = join(place.path, 'pid');
  const script = `case "$*" in *delete*) exit 0;; esac; echo $$ >${pidfile}.new; mv ${pidfile}.new ${pidfile}; exec sleep 600`;
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const flags = [`--config-file=${settings(place.path, { name: 'slow', path })}`];
  await using engine = await TestEngine.start({ flags });
  const id = await engine.create(['true'], { HostConfig: { Runtime: 'slow' } });
  engine.post(`/containers/${id}/start`).catch(() => undefined);
  while (!existsSync(pidfile)) await setTimeout(10);
  await engine.kill('SIGKILL');

  await engine.startAgain();

  assert.equal((await engine.get('/containers/json?all=1')).status, 200);
  assert.ok(existsSync(`/proc/${readFileSync(pidfile, 'utf8').trim()}`), 'the runtime still hangs');
  process.kill(Number(readFileSync(pidfile, 'utf8')), 'SIGKILL');
  assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
});

/** The container's cgroup, in the hierarchy that counts its processes. */
function cgroupOf(id: string): string {
  const [path] = globSync(`/sys/fs/cgroup/{pids/,}docker/${id}`);
  return path!;
}

/** Starts a container, and ends the daemon and then the container's shim. */
async function lose(engine: TestEngine, id: string): Promise<void> {
  const shim = shimOf((await stateOf(engine, id)).Pid);
  await engine.kill('SIGKILL');
  process.kill(shim, 'SIGKILL');
}

test('a cgroup that cannot be removed holds up nobody, and is removed when it can be', async () => {
  await using engine = await TestEngine.start();
  const stuck = await engine.run(['sleep', '1000']);
  const other = await engine.run(['sleep', '1000']);
  const held = join(cgroupOf(stuck), 'held');
  mkdirSync(held);
  // A mount point cannot be removed: EBUSY, as with a process that does not go.
  execFileSync('mount', ['--bind', held, held]);
  using mounted = new DisposableStack();
  mounted.defer(() => void execFileSync('umount', [held]));
  await lose(engine, stuck);

  await engine.startAgain();

  assert.equal((await engine.post(`/containers/${other}/stop?t=0`)).status, 204);
  assert.equal(await engine.wait(stuck), 137);
  while ((await stateOf(engine, stuck)).Error === '') await setTimeout(50);
  assert.match((await stateOf(engine, stuck)).Error, /its remains cannot be removed yet: resource busy/);

  mounted.dispose();
  while ((await stateOf(engine, stuck)).Error !== '') await setTimeout(50);
  assert.equal(existsSync(held), false);
  assert.equal((await engine.post(`/containers/${stuck}/start`)).status, 204);
  assert.equal((await engine.delete(`/containers/${stuck}?force=1`)).status, 204);
});
