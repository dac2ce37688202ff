import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

async function inspect(engine: TestEngine, ref: string): Promise<Inspect> {
  return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
}

/** Resolves when a process that is not our child is gone. */
async function gone(pid: number): Promise<void> {
  await execute('tail', [`--pid=${pid}`, '-s', '0.02', '-f', '/dev/null']);
}

async function crash(engine: TestEngine, meanwhile: () => Promise<void> = async () => undefined): Promise<void> {
  await engine.kill('SIGKILL');
  await meanwhile();
  await engine.startAgain();
}

test('a running container does not notice the death of the daemon', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['sh', '-c', 'i=0; while [ ! -e /end ]; do echo $i; i=$((i+1)); sleep 0.01; done']);
  const before = (await inspect(engine, id)).State;

  await crash(engine);

  const { State } = await inspect(engine, id);
  assert.deepEqual([State.Pid, State.StartedAt], [before.Pid, before.StartedAt]);
  while ((await engine.output(id)).stdout.length < 100) await setTimeout(20);
  const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['touch', '/end'] });
  await engine.post(`/exec/${body.Id}/start`, { Detach: true });
  assert.equal(await engine.wait(id), 0);
  const lines = (await engine.output(id)).stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines,
    lines.map((_, line) => String(line)),
  );
});

test('an exit while there is no daemon has its code and its time', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['sh', '-c', 'read line; exit 23'], { OpenStdin: true });
  const { Pid } = (await inspect(engine, id)).State;
  let [killed, written] = [0, 0];

  await crash(engine, async () => {
    killed = Date.now();
    process.kill(Pid, 'SIGKILL');
    while (!existsSync(join(engine.directory, 'exec/shims', id, 'status'))) await setTimeout(10);
    written = Date.now();
  });

  const { State } = await inspect(engine, id);
  assert.deepEqual([State.Status, State.ExitCode], ['exited', 137]);
  const finished = Date.parse(State.FinishedAt);
  assert.ok(finished >= killed && finished <= written, `${finished} is not from ${killed} to ${written}`);
  assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
});

test('a published port is there again for a container that lives, and given back for one that died', async () => {
  await using engine = await TestEngine.start();
  const bound = (HostPort: string) => ({ HostConfig: { PortBindings: { '80/tcp': [{ HostPort }] } } });
  const alive = await engine.run(['sleep', '1000'], bound('18383'));
  const dying = await engine.run(['sleep', '1000'], bound('18384'));
  const { Pid } = (await inspect(engine, dying)).State;

  await crash(engine, async () => {
    process.kill(Pid, 'SIGKILL');
    await gone(Pid);
  });

  assert.deepEqual((await inspect(engine, alive)).NetworkSettings.Ports['80/tcp'], [
    { HostIp: '0.0.0.0', HostPort: '18383' },
  ]);
  assert.equal((await inspect(engine, dying)).NetworkSettings.IPAddress, '');
  await engine.run(['sleep', '1000'], bound('18384'));
});

test('a paused container is still paused', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['sleep', '1000']);
  await engine.post(`/containers/${id}/pause`);

  await crash(engine);

  assert.equal((await inspect(engine, id)).State.Status, 'paused');
  assert.equal((await engine.post(`/containers/${id}/unpause`)).status, 204);
});

test('a stop that was begun is finished', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'], { StopTimeout: 1 });
  void engine.post(`/containers/${id}/stop?t=60`).catch(() => undefined);
  const filters = encodeURIComponent(JSON.stringify({ event: ['kill'] }));
  const events = await engine.stream('GET', `/events?since=1&filters=${filters}`);
  await new Promise((resolve) => void events.once('data', resolve)); // the signal is on its way

  await crash(engine);

  assert.equal(await engine.wait(id), 137);
  assert.equal((await inspect(engine, id)).State.Status, 'exited');
});

for (const [when, daemonLives] of [
  ['while the daemon lives', true],
  ['while there is no daemon', false],
] as const) {
  test(`a shim that is killed ${when} takes its container with it, and nothing is left`, async () => {
    await using engine = await TestEngine.start();
    const id = await engine.run(['sleep', '1000']);
    const { Pid } = (await inspect(engine, id)).State;
    const shim = shimOf(Pid);
    const kill = async (): Promise<void> => void process.kill(shim, 'SIGKILL');

    await (daemonLives ? kill() : crash(engine, kill));

    assert.equal(await engine.wait(id), 137);
    await gone(Pid);
    assert.equal(existsSync(`/sys/fs/cgroup/memory/docker/${id}`), false);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
  });
}

test('the restart policies are kept at the start of a daemon', async () => {
  await using engine = await TestEngine.start();
  const policy = (Name: string) => ({ HostConfig: { RestartPolicy: { Name } } });
  const stopped = await engine.run(['sleep', '1000'], policy('unless-stopped'));
  const always = await engine.run(['sleep', '1000'], policy('always'));
  const none = await engine.run(['sleep', '1000']);
  for (const id of [stopped, always, none]) await engine.post(`/containers/${id}/stop?t=0`);
  const filters = encodeURIComponent(JSON.stringify({ event: ['start'], container: [always] }));

  await crash(engine);

  const since = Math.floor(Date.now() / 1000) - 5;
  const events = await engine.stream('GET', `/events?since=${since}&filters=${filters}`);
  let started = 0;
  for await (const chunk of events) {
    started += String(chunk).split('"Action":"start"').length - 1;
    if ((await inspect(engine, always)).State.Running) break;
  }
  assert.ok(started > 0);
  assert.equal((await inspect(engine, stopped)).State.Running, false);
  assert.equal((await inspect(engine, none)).State.Running, false);
});

test('a daemon that is killed while it works leaves nothing half done', async () => {
  await using engine = await TestEngine.start();
  await crash(engine); // from here on its network namespace outlives it
  for (let round = 0; round < 10; round += 1) {
    const work = Array.from({ length: 4 }, async (_, index) => {
      const name = `r${round}-${index}`;
      await engine.post(`/containers/create?name=${name}`, {
        Image: 'busybox',
        Cmd: ['sleep', '0.05'],
        Volumes: { '/v': {} },
      });
      await engine.post(`/containers/${name}/start`);
      if (index % 2 === 0) await engine.post(`/containers/${name}/wait`);
      await engine.delete(`/containers/${name}?force=1&v=1`);
    });
    const killed = setTimeout(10 + round * 17).then(async () => await engine.kill('SIGKILL'));
    await Promise.allSettled(work);
    await killed;
    await engine.startAgain();

    const { body } = await engine.get<{ Id: string; State: string }[]>('/containers/json?all=1');
    for (const { Id, State } of body) {
      assert.ok(['created', 'running', 'exited'].includes(State), State);
      assert.equal((await engine.delete(`/containers/${Id}?force=1&v=1`)).status, 204);
    }
  }

  await engine.kill('SIGTERM');
  await engine.startAgain();
  for (const folder of ['data/containers', 'exec/shims', 'exec/runtime', 'data/volumes', 'data/writable']) {
    const path = join(engine.directory, folder);
    const left = existsSync(path) ? readdirSync(path).filter((name) => name !== '.trash') : [];
    assert.deepEqual(left, [], folder);
  }
});

test('a removal that a daemon could not finish keeps its layers, and the next daemon goes on', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.create(['true']);
  const folder = join(engine.dataRoot, 'containers', id);
  const layer = join(engine.dataRoot, 'writable', id);
  const stubborn = join(folder, 'stubborn');

  await engine.kill('SIGTERM');
  const db = new DatabaseSync(join(engine.dataRoot, 'gantry.db'));
  db.exec('DELETE FROM containers');
  db.close();
  mkdirSync(folder, { recursive: true });
  writeFileSync(stubborn, '');
  await execute('chattr', ['+i', stubborn]);
  await engine.startAgain();
  assert.deepEqual([existsSync(folder), existsSync(layer)], [true, true]);
  await engine.kill('SIGTERM');
  await execute('chattr', ['-i', stubborn]);
  await engine.startAgain();

  assert.equal(existsSync(join(engine.dataRoot, 'lost-and-found')), false, engine.log);
  const end = Date.now() + 60_000;
  while ((existsSync(folder) || existsSync(layer)) && Date.now() < end) await setTimeout(20);
  assert.deepEqual([existsSync(folder), existsSync(layer)], [false, false]);
});
