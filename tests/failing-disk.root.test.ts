import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { ExecInspect } from '@gantry/engine/exec/schema.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
type Event = { Action: string; id: string };

/** Below what the database's log has already: each further write is refused, which SQLite calls an I/O error. */
const HARDLY_A_BYTE = 1000;

suite("a disk that refuses the daemon's writes", { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;

  /** `late` runs a container and lets the daemon's writes fail from then on. */
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-failing-'));
    const script = `case "$*" in *" run "*) crun "$@"; r=$?; prlimit --pid "$(cat ${folder}/pid)" --fsize=${HARDLY_A_BYTE}:; exit $r;; esac`;
    writeFileSync(join(folder, 'late'), `#!/bin/sh\n${script}\nexec crun "$@"\n`, { mode: 0o755 });
    engine = await TestEngine.start({ flags: [`--add-runtime=late=${folder}/late`] });
    writeFileSync(join(folder, 'pid'), String(engine.pid));
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  function limit(bytes: number | 'unlimited'): void {
    execFileSync('prlimit', ['--pid', String(engine.pid), `--fsize=${bytes}:`]);
  }

  function failing(): Disposable {
    limit(HARDLY_A_BYTE);
    return { [Symbol.dispose]: () => limit('unlimited') };
  }

  async function stateOf(id: string): Promise<Inspect['State']> {
    return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
  }

  /** Kills the process and waits until its shim has taken note; the daemon is told at the same moment. */
  async function kill(pid: number): Promise<void> {
    process.kill(pid, 'SIGKILL');
    await eventually(`process ${pid} is gone`, () => !existsSync(`/proc/${pid}`));
    await engine.get('/_ping');
  }

  test("no exit is lost, and the container's resources are free again", async () => {
    const port = { HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '18090' }] } } };
    const id = await engine.run(['sleep', '1000'], port);
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['sleep', '1000'] });
    await engine.post(`/exec/${body.Id}/start`, { Detach: true });
    const { Pid: execPid } = (await engine.get<ExecInspect & { Pid: number }>(`/exec/${body.Id}/json`)).body;
    const { Pid } = await stateOf(id);
    const filters = encodeURIComponent(JSON.stringify({ container: [id], event: ['die', 'exec_die', 'destroy'] }));
    const events = await engine.stream('GET', `/events?filters=${filters}`);
    const told: string[] = [];
    events.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().trim().split('\n')) told.push((JSON.parse(line) as Event).Action);
    });

    {
      using _failing = failing();
      await kill(execPid);
      await kill(Pid);
      const refused = await engine.post<Message>('/containers/create', { Image: 'busybox', Cmd: ['true'] });
      assert.equal(refused.status, 500);
      assert.equal((await stateOf(id)).Running, true, 'its end is not stored yet');
    }

    assert.equal(await engine.wait(id), 137);
    await eventually(
      'the end of the exec',
      async () => (await engine.get<ExecInspect>(`/exec/${body.Id}/json`)).body.ExitCode === 137,
    );
    const successor = await engine.run(['sleep', '1000'], port);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
    await eventually('a destroy event', () => told.includes('destroy'));
    assert.deepEqual(told.toSorted(), ['destroy', 'die', 'exec_die']);
    assert.equal((await engine.delete(`/containers/${successor}?force=1`)).status, 204);
  });

  test('a restart policy goes on when there is space again', async () => {
    const id = await engine.run(['sleep', '1000'], { HostConfig: { RestartPolicy: { Name: 'always' } } });
    const { Pid } = await stateOf(id);

    {
      using _failing = failing();
      await kill(Pid);
      await setTimeout(300); // beyond the policy's delay
    }

    await eventually('a restart', async () => {
      const state = await stateOf(id);
      return state.Running && state.Pid !== Pid;
    });
    assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
  });

  test('a run that cannot be stored is ended, and can be started later', async () => {
    const id = await engine.create(['sleep', '1000'], { HostConfig: { Runtime: 'late' } });

    const { status } = await engine.post(`/containers/${id}/start`);

    assert.equal(status, 500);
    assert.equal(existsSync(`/sys/fs/cgroup/pids/docker/${id}`), false);
    assert.deepEqual(readdirSync(join(engine.directory, 'exec/shims')), []);
    limit('unlimited');
    await eventually('the failed start', async () => (await stateOf(id)).ExitCode === 128);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });

  test('a removal that cannot be stored changes nothing', async () => {
    const id = await engine.create(['cat', '/v/file'], { HostConfig: { Binds: ['kept:/v'] }, Volumes: { '/w': {} } });
    const { Mountpoint } = (await engine.get<{ Mountpoint: string }>('/volumes/kept')).body;
    writeFileSync(join(Mountpoint, 'file'), 'kept');
    const volumes = async (): Promise<number> =>
      (await engine.get<{ Volumes: unknown[] }>('/volumes')).body.Volumes.length;
    const before = await volumes();

    {
      using _failing = failing();
      assert.equal((await engine.delete(`/containers/${id}?v=1`)).status, 500);
    }

    assert.equal(await volumes(), before);
    await engine.post(`/containers/${id}/start`);
    assert.equal(await engine.wait(id), 0);
    assert.equal((await engine.output(id)).stdout, 'kept');
    assert.equal((await engine.delete(`/containers/${id}?v=1`)).status, 204);
    {
      using _failing = failing();
      assert.equal((await engine.delete('/volumes/kept')).status, 500);
    }
    assert.equal(readFileSync(join(Mountpoint, 'file'), 'utf8'), 'kept');
    assert.equal((await engine.delete('/volumes/kept')).status, 204);
    assert.equal(await volumes(), before - 2);
  });

  test('a pause that cannot be stored leaves the container as it was', async () => {
    const id = await engine.run(['sh', '-c', 'while :; do echo line; sleep 0.01; done']);
    const lines = async (): Promise<number> => (await engine.output(id)).stdout.length;

    {
      using _failing = failing();
      assert.equal((await engine.post(`/containers/${id}/pause`)).status, 500);
    }

    const before = await lines();
    await eventually('more lines', async () => (await lines()) > before);
    assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
  });

  test('a hosts file that cannot be written keeps no container from running and none from ending', async () => {
    const target = await engine.run(['sleep', '1000'], {}, 'linked');
    const user = await engine.run(['sleep', '1000'], { HostConfig: { Links: ['linked:db'] } });
    const hosts = join(engine.dataRoot, 'containers', user, 'hosts');
    await engine.post(`/containers/${target}/stop?t=0`);
    const other = await engine.run(['sleep', '1000']); // it gets the address
    execFileSync('chattr', ['+i', hosts]);
    try {
      assert.equal((await engine.post(`/containers/${target}/start`)).status, 204);
    } finally {
      execFileSync('chattr', ['-i', hosts]);
    }

    const { NetworkSettings } = (await engine.get<Inspect>(`/containers/${target}/json`)).body;
    await eventually('the new address', () => readFileSync(hosts, 'utf8').includes(`${NetworkSettings.IPAddress}\tdb`));
    await kill((await stateOf(target)).Pid);
    assert.equal(await engine.wait(target), 137);
    for (const id of [user, other, target]) await engine.delete(`/containers/${id}?force=1`);
  });
});
