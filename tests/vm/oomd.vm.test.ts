import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { BothEngines, type Side } from '../clients/both-engines.ts';

const execute = promisify(execFile);
const SLICE = 'gantryoomd.slice';
/** As soon as systemd-oomd can: one second of pressure of one percent. */
const UNIT = '[Slice]\nManagedOOMMemoryPressure=kill\nManagedOOMMemoryPressureLimit=1%\n';
const OOMD = '[OOM]\nDefaultMemoryPressureDurationSec=1s\n';
const UNITS = '/run/systemd/system';
const SETTINGS = '/run/systemd/oomd.conf.d';
const MB = 1024 * 1024;
/** Reads again and again what is twice as large as its memory, so that half of it is always in swap. */
const THRASH = 'head -c 48m /dev/zero >/dev/shm/file; while :; do cat /dev/shm/file >/dev/null; done';

suite('systemd-oomd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    await mkdir(SETTINGS, { recursive: true });
    await writeFile(`${UNITS}/${SLICE}`, UNIT);
    await writeFile(`${SETTINGS}/gantry-test.conf`, OOMD);
    await execute('systemctl', ['daemon-reload']);
    await execute('systemctl', ['restart', 'systemd-oomd.service']);
    engines = await BothEngines.start();
  });
  after(async () => {
    await engines[Symbol.asyncDispose]();
    await execute('systemctl', ['stop', SLICE]);
    for (const file of [`${UNITS}/${SLICE}`, `${SETTINGS}/gantry-test.conf`]) await rm(file);
    await execute('systemctl', ['daemon-reload']);
    await execute('systemctl', ['restart', 'systemd-oomd.service']);
  });

  test('it watches the slice of containers, and kills the one under pressure alone, which ends as with dockerd', async () => {
    const ours = await underPressure(engines.ours);
    const theirs = await underPressure(engines.theirs);

    assert.deepEqual(ours, theirs);
    assert.deepEqual(ours.killed, { Status: 'exited', ExitCode: 137, OOMKilled: false });
  });

  test('a container that it has killed can be started again, and leaves no unit', async () => {
    const { api } = engines.ours;
    const id = await started(engines.ours, THRASH);
    await api.post(`/containers/${id}/wait`);

    const again = await api.post(`/containers/${id}/start`);

    assert.equal(again.status, 204, again.raw.toString());
    assert.ok(existsSync(`/sys/fs/cgroup/${SLICE}/docker-${id}.scope`));
    await api.delete(`/containers/${id}?force=1`);
    const isLoaded = async (): Promise<boolean> =>
      !(await stdoutOf('systemctl', 'show', '--property=LoadState', `docker-${id}.scope`)).includes('not-found');
    while (await isLoaded()) await setTimeout(200);
  });
});

/** Ends of a container under pressure, and of a calm one in the same slice. */
async function underPressure(side: Side): Promise<{ killed: unknown; calm: unknown }> {
  const calm = await started(side, 'sleep 1000');
  await isWatched();
  const hungry = await started(side, THRASH);
  await side.api.post(`/containers/${hungry}/wait`);
  const states = { killed: await stateOf(side, hungry), calm: await stateOf(side, calm) };
  for (const id of [calm, hungry]) await side.api.delete(`/containers/${id}?force=1`);
  return states;
}

/** systemd tells of a slice when there is something in it. */
async function isWatched(): Promise<void> {
  for (const deadline = Date.now() + 300_000; Date.now() < deadline; await setTimeout(200)) {
    const [, byPressure = ''] = (await stdoutOf('oomctl')).split('Memory Pressure Monitored CGroups');
    if (byPressure.includes(`Path: /${SLICE}\n`)) return;
  }
  throw new Error(`systemd-oomd does not watch ${SLICE}: ${await stdoutOf('oomctl')}`);
}

async function started({ api }: Side, script: string): Promise<string> {
  const HostConfig = { CgroupParent: SLICE, NetworkMode: 'none', Memory: 24 * MB, MemorySwap: 144 * MB };
  const body = { Image: 'busybox', Cmd: ['sh', '-c', script], HostConfig };
  const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
  const { status, raw } = await api.post(`/containers/${Id}/start`);
  assert.equal(status, 204, raw.toString());
  return Id;
}

async function stateOf({ api }: Side, id: string): Promise<unknown> {
  const { body } = await api.get<{ State: Record<string, unknown> }>(`/containers/${id}/json`);
  const { Status, ExitCode, OOMKilled } = body.State;
  return { Status, ExitCode, OOMKilled };
}

async function stdoutOf(command: string, ...words: string[]): Promise<string> {
  return (await execute(command, words)).stdout;
}
