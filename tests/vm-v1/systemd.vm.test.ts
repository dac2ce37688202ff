import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const BY_SYSTEMD = '--exec-opt=native.cgroupdriver=systemd';
const LIMITS = {
  ...{ Memory: 64 << 20, MemorySwap: 96 << 20, MemoryReservation: 32 << 20, PidsLimit: 55 },
  ...{ CpuShares: 512, CpuPeriod: 50_000, CpuQuota: 20_000, CpusetCpus: '1', NetworkMode: 'none' },
};
const FILES = {
  memory: ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', 'memory.soft_limit_in_bytes'],
  cpu: ['cpu.shares', 'cpu.cfs_period_us', 'cpu.cfs_quota_us'],
  cpuset: ['cpuset.cpus'],
  pids: ['pids.max'],
};

test('on version 1 containers are not systemd’s unless it is asked for, as with dockerd', async () => {
  await using engine = await TestEngine.start();
  await using dockerd = await Dockerd.start();

  for (const api of [engine, dockerd.api]) {
    const { CgroupDriver, CgroupVersion } = (await api.get<Record<string, string>>('/info')).body;
    assert.deepEqual([CgroupDriver, CgroupVersion], ['cgroupfs', '1']);
  }
});

test('with its driver a container is a scope with the limits of dockerd’s, which reloads and updates keep', async () => {
  await using engine = await TestEngine.start({ flags: [BY_SYSTEMD] });
  await using dockerd = await Dockerd.start([BY_SYSTEMD]);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  const theirs = await started(dockerd.api, LIMITS);
  const expected = filesOf(theirs.pid);
  await dockerd.api.delete(`/containers/${theirs.id}?force=1`);

  for (const Runtime of ['crun', 'runc']) {
    const { id, pid } = await started(engine, { ...LIMITS, Runtime });
    const scope = `gantry-${id}.scope`;
    assert.deepEqual([Runtime, filesOf(pid)], [Runtime, expected]);
    const places = cgroupsOf(pid);
    for (const controller of Object.keys(FILES)) assert.equal(places.get(controller), `/system.slice/${scope}`);
    await execute('systemctl', ['daemon-reload']);
    assert.deepEqual(filesOf(pid), expected);

    const update = { Memory: 80 << 20, MemorySwap: 120 << 20, CpuShares: 2048, CpuQuota: 25_000 };
    const { status, raw } = await engine.post(`/containers/${id}/update`, update);

    assert.equal(status, 200, raw.toString());
    const updated = {
      ...expected,
      ...{ 'memory.limit_in_bytes': `${80 << 20}`, 'memory.memsw.limit_in_bytes': `${120 << 20}` },
      ...{ 'cpu.shares': '2048', 'cpu.cfs_quota_us': '25000' },
    };
    assert.deepEqual(filesOf(pid), updated);
    await execute('systemctl', ['daemon-reload']);
    assert.deepEqual(filesOf(pid), updated);
    await engine.kill();
    await engine.startAgain();
    assert.equal((await engine.get<{ Processes: unknown[] }>(`/containers/${id}/top`)).body.Processes.length, 1);
    await engine.delete(`/containers/${id}?force=1`);
    await isGone(scope);
  }
});

async function started(api: Api, HostConfig: object): Promise<{ id: string; pid: number }> {
  const body = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig };
  const { Id: id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
  const start = await api.post(`/containers/${id}/start`);
  assert.equal(start.status, 204, start.raw.toString());
  const { State } = (await api.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body;
  return { id, pid: State.Pid };
}

function filesOf(pid: number): Record<string, string> {
  const places = cgroupsOf(pid);
  const read = (controller: string, file: string): [string, string] => [
    file,
    readFileSync(`/sys/fs/cgroup/${controller}${places.get(controller)}/${file}`, 'utf8').trim(),
  ];
  return Object.fromEntries(
    Object.entries(FILES).flatMap(([controller, files]) => files.map((file) => read(controller, file))),
  );
}

/** By controller. */
function cgroupsOf(pid: number): Map<string, string> {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, controllers = '', path = ''] = line.split(':');
      return controllers.split(',').map((name): [string, string] => [name, path]);
    }),
  );
}

/** systemd is told of an empty cgroup a moment after it is. */
async function isGone(scope: string): Promise<void> {
  const places = Object.keys(FILES).map((controller) => `/sys/fs/cgroup/${controller}/system.slice/${scope}`);
  for (const deadline = Date.now() + 300_000; places.some((place) => existsSync(place)); await setTimeout(200))
    assert.ok(Date.now() < deadline, `${scope} stays`);
}
