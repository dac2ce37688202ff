import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { detectCgroups, hasCgroup } from '../../../host/cgroups/cgroups.ts';
import { SHIM_PROGRAM } from '../../../runtime/shim/shim-program.ts';

const UNTIL_STOPPED = ['sh', '-c', 'trap "echo bye; exit 3" TERM; echo hello; while :; do sleep 0.05; done'];

async function stateOf(engine: TestEngine, id: string): Promise<Inspect['State']> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
}

/** Daemons that start meanwhile use this build of the shim. */
async function withShim<T>(program: string, work: () => Promise<T>): Promise<T> {
  process.env.GANTRY_SHIM = program;
  try {
    return await work();
  } finally {
    process.env.GANTRY_SHIM = SHIM_PROGRAM;
  }
}

test('a daemon with another build of the shim goes on with the containers of the one before', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-old-'));
  const old = join(place.path, 'gantry-shim');
  copyFileSync(SHIM_PROGRAM, old);
  await using engine = await withShim(old, async () => await TestEngine.start());
  const id = await engine.run(UNTIL_STOPPED);
  const before = await stateOf(engine, id);
  await engine.kill('SIGTERM');
  rmSync(old);
  await engine.startAgain();

  const young = await engine.run(['sleep', '1000']);
  const after = await stateOf(engine, id);

  assert.deepEqual(after, before);
  assert.equal(readlinkSync(`/proc/${shimOf(after.Pid)}/exe`), `${old} (deleted)`);
  assert.equal(readlinkSync(`/proc/${shimOf((await stateOf(engine, young)).Pid)}/exe`), SHIM_PROGRAM);
  const { body: exec } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, {
    Cmd: ['echo', 'there'],
    AttachStdout: true,
  });
  const { raw } = await engine.post(`/exec/${exec.Id}/start`, {});
  assert.equal(raw.subarray(8).toString(), 'there\n');
  assert.equal((await engine.post(`/containers/${id}/stop`)).status, 204);
  assert.equal((await stateOf(engine, id)).ExitCode, 3);
  assert.equal((await engine.output(id)).stdout, 'hello\nbye\n');
});

test('a daemon that does not speak the version of a shim says so, and touches no container', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-future-'));
  await using engine = await TestEngine.start();
  const id = await engine.run(['sleep', '1000']);
  const before = await stateOf(engine, id);
  await engine.kill();
  const socket = join(engine.directory, 'exec/shims', id, 'shim.sock');
  renameSync(socket, `${socket}.kept`);
  const future = join(place.path, 'sock');
  symlinkSync(future, socket);
  {
    await using server = createServer((client) => client.resume().end('ok 9 1234\n')).listen(future);
    await once(server, 'listening');

    await assert.rejects(engine.startAgain(), /the shim 1234 speaks version 9 of its protocol, this daemon 1/);
  }
  renameSync(`${socket}.kept`, socket);

  await engine.startAgain();

  assert.deepEqual(await stateOf(engine, id), before);
});

test('containers of an earlier version are found in their cgroups, and run next in those of docker', async () => {
  const driver = '--cgroup-driver=cgroupfs';
  await using engine = await TestEngine.start({ flags: [driver, '--cgroup-parent=/gantry'] });
  const ids = await Promise.all([1, 2, 3].map(async () => await engine.run(UNTIL_STOPPED)));
  const [withoutPlace, withoutPrefix, withoutRecord] = ids as [string, string, string];
  await engine.kill('SIGTERM');
  {
    using db = new DatabaseSync(join(engine.dataRoot, 'gantry.db'));
    const remove = db.prepare('UPDATE containers SET record = json_remove(record, ?) WHERE id = ?');
    remove.run('$.cgroup', withoutPlace);
    remove.run('$.cgroup.prefix', withoutPrefix);
    db.prepare('DELETE FROM containers WHERE id = ?').run(withoutRecord);
  }
  const has = (parent: string, id: string): boolean => hasCgroup(detectCgroups(), `/${parent}/${id}`);

  await engine.startAgain([driver]);

  for (const id of [withoutPlace, withoutPrefix]) {
    assert.deepEqual([has('gantry', id), has('docker', id)], [true, false]);
    const { body } = await engine.get<{ Processes: object[] }>(`/containers/${id}/top`);
    assert.ok(body.Processes.length > 0);
    for (const action of ['pause', 'unpause', 'restart']) {
      assert.equal((await engine.post(`/containers/${id}/${action}`)).status, 204);
    }
    assert.deepEqual([has('gantry', id), has('docker', id)], [false, true]);
  }
  while (has('gantry', withoutRecord)) await setTimeout(20);
});
