import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
/** Kills of a daemon amid its work, each a little later than the one before. */
const ROUNDS = 6;

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

suite('recovery of containers after a kill of their daemon', { concurrency: false }, () => {
  let engine: TestEngine;
  const ids = new Map<string, string>();
  const states = new Map<string, Inspect['State']>();
  let [killed, written] = [0, 0];
  const idOf = (name: string): string => ids.get(name)!;
  const inspected = async (name: string): Promise<Inspect> => await inspect(engine, idOf(name));

  before(async () => {
    engine = await TestEngine.start();
    const bound = (HostPort: string) => ({ HostConfig: { PortBindings: { '80/tcp': [{ HostPort }] } } });
    const policy = (Name: string) => ({ HostConfig: { RestartPolicy: { Name } } });
    const sleeps = ['sleep', '1000'];
    const counts = ['sh', '-c', 'i=0; while [ ! -e /end ]; do echo $i; i=$((i+1)); sleep 0.01; done'];
    const deaf = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'];
    const all: readonly (readonly [string, readonly string[], object?])[] = [
      ['counting', counts],
      ['ending', ['sh', '-c', 'read line; exit 23'], { OpenStdin: true }],
      ['open', sleeps, bound('18383')],
      ['open and dying', sleeps, bound('18384')],
      ['paused', sleeps],
      ['deaf', deaf, { StopTimeout: 1 }],
      ['without shim', sleeps],
      ['unless-stopped', sleeps, policy('unless-stopped')],
      ['always', sleeps, policy('always')],
      ['stopped', sleeps],
    ];
    for (const [name, command, body = {}] of all) {
      ids.set(name, await engine.run(command, { ...body }));
      states.set(name, (await inspected(name)).State);
    }
    await engine.post(`/containers/${idOf('paused')}/pause`);
    for (const name of ['unless-stopped', 'always', 'stopped']) await engine.post(`/containers/${idOf(name)}/stop?t=0`);
    void engine.post(`/containers/${idOf('deaf')}/stop?t=60`).catch(() => undefined);
    const filters = encodeURIComponent(JSON.stringify({ event: ['kill'], container: [idOf('deaf')] }));
    const events = await engine.stream('GET', `/events?since=1&filters=${filters}`);
    await new Promise((resolve) => void events.once('data', resolve)); // the signal is on its way
    const pidOf = (name: string): number => states.get(name)!.Pid;
    const shim = shimOf(pidOf('without shim'));

    await crash(engine, async () => {
      killed = Date.now();
      process.kill(pidOf('ending'), 'SIGKILL');
      await eventually('the status is written', () =>
        existsSync(join(engine.directory, 'exec/shims', idOf('ending'), 'status')),
      );
      written = Date.now();
      process.kill(pidOf('open and dying'), 'SIGKILL');
      process.kill(shim, 'SIGKILL');
      await gone(pidOf('open and dying'));
    });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('a running container does not notice the death of the daemon', async () => {
    const id = idOf('counting');
    const { Pid, StartedAt } = (await inspected('counting')).State;
    const before = states.get('counting')!;
    assert.deepEqual([Pid, StartedAt], [before.Pid, before.StartedAt]);
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
    const { State } = await inspected('ending');

    assert.deepEqual([State.Status, State.ExitCode], ['exited', 137]);
    const finished = Date.parse(State.FinishedAt);
    assert.ok(finished >= killed && finished <= written, `${finished} is not from ${killed} to ${written}`);
    assert.equal((await engine.post(`/containers/${idOf('ending')}/start`)).status, 204);
  });

  test('a published port is there again for a container that lives, and given back for one that died', async () => {
    const { Ports } = (await inspected('open')).NetworkSettings;

    assert.deepEqual(Ports['80/tcp'], [{ HostIp: '0.0.0.0', HostPort: '18383' }]);
    assert.equal((await inspected('open and dying')).NetworkSettings.IPAddress, '');
    await engine.run(['sleep', '1000'], { HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '18384' }] } } });
  });

  test('a paused container is still paused', async () => {
    assert.equal((await inspected('paused')).State.Status, 'paused');
    assert.equal((await engine.post(`/containers/${idOf('paused')}/unpause`)).status, 204);
  });

  test('a stop that was begun is finished', async () => {
    assert.equal(await engine.wait(idOf('deaf')), 137);
    assert.equal((await inspected('deaf')).State.Status, 'exited');
  });

  test('a shim that is killed while there is no daemon takes its container with it, and nothing is left', async () => {
    await assertEnded(idOf('without shim'), states.get('without shim')!.Pid);
  });

  test('a shim that is killed while the daemon lives takes its container with it, and nothing is left', async () => {
    const id = await engine.run(['sleep', '1000']);
    const { Pid } = (await inspect(engine, id)).State;

    process.kill(shimOf(Pid), 'SIGKILL');

    await assertEnded(id, Pid);
  });

  async function assertEnded(id: string, pid: number): Promise<void> {
    assert.equal(await engine.wait(id), 137);
    await gone(pid);
    assert.equal(existsSync(`/sys/fs/cgroup/memory/docker/${id}`), false);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
  }

  test('the restart policies are kept at the start of a daemon', async () => {
    await eventually('it is started', async () => (await inspected('always')).State.Running);
    assert.equal((await inspected('unless-stopped')).State.Running, false);
    assert.equal((await inspected('stopped')).State.Running, false);
  });

  test('a daemon that is killed while it works leaves nothing half done', async () => {
    const { body: all } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
    for (const { Id } of all) await engine.delete(`/containers/${Id}?force=1&v=1`);
    for (let round = 0; round < ROUNDS; round += 1) {
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
      const killed = setTimeout(10 + round * 31).then(async () => await engine.kill('SIGKILL'));
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
    await eventually('it is removed', () => !existsSync(folder) && !existsSync(layer));
  });
});
