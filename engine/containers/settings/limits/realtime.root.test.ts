import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { detectCgroups, removeCgroup } from '../../../host/cgroups/cgroups.ts';
import { limitSupport } from '../../../host/cgroups/limit-support.ts';

type Limits = { CpuRealtimePeriod?: number; CpuRealtimeRuntime?: number; CgroupParent?: string };
type Shown = { HostConfig: Required<Limits> };

const cgroups = detectCgroups();
const mount = cgroups.controllers.get('cpu')!;
const hasRealtime = limitSupport(cgroups).realtime;
const PARENTS = { ours: `/gantry-realtime-${process.pid}`, theirs: `/dockerd-realtime-${process.pid}` };
/** Share of both engines together: less than the 95 % that the kernel gives away. */
const SHARE = ['--cpu-rt-period=1000000', '--cpu-rt-runtime=100000'];

const BODIES: readonly (readonly [Limits, 'started' | 'refused at the start' | 'refused at the creation'])[] = [
  [{ CpuRealtimePeriod: 500_000 }, 'started'],
  [{ CpuRealtimeRuntime: 10_000 }, 'started'],
  [{ CpuRealtimePeriod: 1_000_000, CpuRealtimeRuntime: 10_000 }, 'started'],
  [{ CpuRealtimePeriod: 500_000, CpuRealtimeRuntime: 10_000 }, 'started'],
  [{ CpuRealtimeRuntime: 200_000 }, 'refused at the start'],
  [{ CpuRealtimePeriod: 100_000, CpuRealtimeRuntime: 90_000 }, 'refused at the start'],
  [{ CpuRealtimePeriod: 1000, CpuRealtimeRuntime: 1001 }, 'refused at the creation'],
  // The last one: the groups that it makes take all that their parent has.
  [{ CpuRealtimeRuntime: 10_000, CgroupParent: '{parent}/inner/most' }, 'started'],
];

suite('shares of real-time processes', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [engine, dockerd] = await Promise.all([
      TestEngine.start({ flags: [...SHARE, `--cgroup-parent=${PARENTS.ours}`, '--cgroup-driver=cgroupfs'] }),
      Dockerd.start([...SHARE, `--cgroup-parent=${PARENTS.theirs}`]),
    ]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await dockerd[Symbol.asyncDispose]();
    for (const parent of Object.values(PARENTS)) {
      for (const path of [`${parent}/inner/most`, `${parent}/inner`, parent]) removeCgroup(cgroups, path);
    }
  });

  const sides = (): [Api, string][] => [
    [engine, PARENTS.ours],
    [dockerd.api, PARENTS.theirs],
  ];

  for (const [limits, end] of BODIES) {
    test(`${JSON.stringify(limits)}: ${end} where the kernel has them, as by dockerd`, async () => {
      const [ours, theirs] = await Promise.all(
        sides().map(async ([api, parent]) => await outcome(api, parent, limits)),
      );

      assert.deepEqual(ours, theirs);
      assert.equal(ours!.end, hasRealtime || end === 'refused at the creation' ? end : ours!.end);
    });
  }

  test('an update counts for the running container at once, whichever number grows, or changes nothing', async () => {
    if (!hasRealtime) {
      await assertRefused();
      return;
    }
    const parent = `${PARENTS.ours}/inner/most`;
    const own = { NetworkMode: 'none', CgroupParent: parent, CpuRealtimeRuntime: 10_000 };
    const id = await engine.run(['sleep', '1000'], { HostConfig: own });
    const updates: [Limits, number, [period: number, runtime: number]][] = [
      [{ CpuRealtimePeriod: 100_000, CpuRealtimeRuntime: 5000 }, 200, [100_000, 5000]],
      [{ CpuRealtimePeriod: 1_000_000, CpuRealtimeRuntime: 90_000 }, 200, [1_000_000, 90_000]],
      [{ CpuRealtimeRuntime: 20_000 }, 200, [1_000_000, 20_000]],
      [{ CpuRealtimePeriod: 500_000 }, 200, [500_000, 20_000]],
      [{ CpuRealtimeRuntime: 400_000 }, 500, [500_000, 20_000]],
      [{ CpuRealtimePeriod: 400_000, CpuRealtimeRuntime: 300_000 }, 500, [500_000, 20_000]],
      [{ CpuRealtimePeriod: 10_000 }, 400, [500_000, 20_000]],
      [{ CpuRealtimePeriod: 1000, CpuRealtimeRuntime: 1001 }, 400, [500_000, 20_000]],
    ];

    for (const [limits, status, [period, runtime]] of updates) {
      const answer = await engine.post(`/containers/${id}/update`, limits);

      const { HostConfig } = (await engine.get<Shown>(`/containers/${id}/json`)).body;
      assert.equal(answer.status, status, JSON.stringify(limits));
      assert.deepEqual(kernel(parent, id), { period, runtime }, JSON.stringify(limits));
      const stored = { period: HostConfig.CpuRealtimePeriod || 1_000_000, runtime: HostConfig.CpuRealtimeRuntime };
      assert.deepEqual(stored, { period, runtime }, JSON.stringify(limits));
    }
  });

  async function assertRefused(): Promise<void> {
    const id = await engine.create(['true']);

    const answer = await engine.post(`/containers/${id}/update`, { CpuRealtimeRuntime: 1 });

    assert.deepEqual(
      [answer.status, answer.body],
      [400, { message: 'Your kernel does not support CPU real-time scheduler' }],
    );
  }
});

/** How far a container comes, what is shown of it, and what the kernel has. */
async function outcome(api: Api, parent: string, limits: Limits): Promise<{ end: string } & Record<string, unknown>> {
  const own = JSON.parse(JSON.stringify(limits).replace('{parent}', parent)) as Limits;
  const HostConfig = { NetworkMode: 'none', ...own };
  const made = await api.post<{ Id: string; message?: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['sleep', '1000'],
    HostConfig,
  });
  if (made.status !== 201) return { end: 'refused at the creation', message: made.body.message };
  const { Id } = made.body;
  const started = await api.post(`/containers/${Id}/start`);
  const { body } = await api.get<Shown>(`/containers/${Id}/json`);
  const { CpuRealtimePeriod: period, CpuRealtimeRuntime: runtime } = body.HostConfig;
  const isStarted = started.status === 204;
  const live = isStarted ? kernel(own.CgroupParent ?? parent, Id) : undefined;
  await api.delete(`/containers/${Id}?force=1`);
  return {
    end: isStarted ? 'started' : 'refused at the start',
    status: started.status,
    shown: { period, runtime },
    live,
  };
}

function kernel(parent: string, id: string): { period: number; runtime: number } | undefined {
  const read = (name: string): number => Number(readFileSync(join(mount, parent, id, name), 'utf8'));
  if (!existsSync(join(mount, parent, id, 'cpu.rt_period_us'))) return undefined;
  return { period: read('cpu.rt_period_us'), runtime: read('cpu.rt_runtime_us') };
}
