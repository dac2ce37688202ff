import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { detectCgroups, type Controller } from '../../host/cgroups/cgroups.ts';
import type { Inspect } from '../schema.ts';

const MB = 1 << 20;
const cgroups = detectCgroups();
const FILES: readonly [Controller, string][] =
  cgroups.version === 1
    ? [
        ['cpu', 'cpu.shares'],
        ['cpu', 'cpu.cfs_period_us'],
        ['cpu', 'cpu.cfs_quota_us'],
        ['cpuset', 'cpuset.cpus'],
        ['cpuset', 'cpuset.mems'],
        ['memory', 'memory.limit_in_bytes'],
        ['memory', 'memory.memsw.limit_in_bytes'],
        ['memory', 'memory.soft_limit_in_bytes'],
        ['pids', 'pids.max'],
      ]
    : [
        ['cpu', 'cpu.weight'],
        ['cpu', 'cpu.max'],
        ['cpuset', 'cpuset.cpus'],
        ['cpuset', 'cpuset.mems'],
        ['memory', 'memory.max'],
        ['memory', 'memory.low'],
        ['pids', 'pids.max'],
      ];
const FIELDS = [
  ...['CpuShares', 'CpuPeriod', 'CpuQuota', 'NanoCpus', 'CpusetCpus', 'CpusetMems', 'Memory', 'MemorySwap'],
  ...['MemoryReservation', 'KernelMemory', 'BlkioWeight', 'PidsLimit', 'RestartPolicy'],
] as const;

type Body = Record<string, unknown>;

suite('updates', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [engine, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start()]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await dockerd[Symbol.asyncDispose]();
  });

  /** The status and message of each update, and what the record and the kernel have after it. */
  async function outcomes(api: Api, state: string, updates: readonly Body[]): Promise<unknown[]> {
    const made = await api.post<{ Id: string }>('/containers/create', { Image: 'busybox', Cmd: ['sleep', '1000'] });
    const id = made.body.Id;
    if (state !== 'created') await api.post(`/containers/${id}/start`);
    if (state === 'paused') await api.post(`/containers/${id}/pause`);
    const found: unknown[] = [];
    for (const body of updates) {
      const answer = await api.post<{ message?: string; Warnings?: string[] }>(`/containers/${id}/update`, body);
      const shown = (await api.get<Inspect>(`/containers/${id}/json`)).body.HostConfig as unknown as Body;
      found.push({
        body,
        status: answer.status,
        message: answer.body.message?.replaceAll(id, '<id>'),
        warnings: answer.body.Warnings ?? [],
        record: Object.fromEntries(FIELDS.map((field) => [field, shown[field]])),
        kernel: ['running', 'paused'].includes(state) ? await limitsOf(api, id) : undefined,
      });
    }
    await api.delete(`/containers/${id}?force=1`);
    return found;
  }

  // On version 2 dockerd loses one half of a pair when an update gives the other.
  const UPDATES: readonly Body[] = [
    {},
    { CpuShares: 512 },
    { cpushares: 256 },
    { Memory: 64 * MB },
    { Memory: 64 * MB, MemorySwap: 128 * MB },
    { Memory: 32 * MB },
    ...(cgroups.version === 1 ? [{ MemorySwap: 96 * MB }] : []),
    { Memory: 256 * MB, MemorySwap: 512 * MB },
    { Memory: MB },
    { Memory: 64 * MB, MemorySwap: 32 * MB },
    { MemoryReservation: 16 * MB },
    { MemoryReservation: MB },
    { CpuPeriod: 50_000, CpuQuota: 25_000 },
    ...(cgroups.version === 1 ? [{ CpuPeriod: 20_000 }, { CpuQuota: 5000 }] : []),
    { CpuPeriod: 10 },
    { CpuQuota: 10 },
    { CpuQuota: -1 },
    { NanoCpus: 500_000_000 },
    { CpusetCpus: '0' },
    { CpusetCpus: '0-999' },
    { CpusetCpus: 'x' },
    { CpusetMems: '0' },
    { CpusetMems: '9' },
    { KernelMemory: MB },
    { PidsLimit: 5 },
    { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 3 } },
    { RestartPolicy: { Name: 'always', MaximumRetryCount: 3 } },
    { RestartPolicy: { Name: 'odd' } },
    { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: -1 } },
    { RestartPolicy: { Name: '' } },
    { RestartPolicy: { Name: 'no' } },
    { Memory: 64 * MB, MemorySwap: 128 * MB, CpuShares: 128, CpusetCpus: '0-1', Privileged: true },
  ];

  for (const state of ['running', 'created', 'paused']) {
    test(`are answered, stored and applied as by dockerd: ${state}`, async () => {
      const updates = state === 'running' || state === 'created' ? UPDATES : UPDATES.slice(0, 6);

      const [ours, theirs] = await Promise.all([
        outcomes(engine, state, updates),
        outcomes(dockerd.api, state, updates),
      ]);

      for (const [index, outcome] of ours.entries()) assert.deepEqual(outcome, theirs[index]);
    });
  }

  test('a limit that the kernel refuses changes nothing, neither live nor stored', async () => {
    const id = await engine.run(['sleep', '1000']);
    const kernel = await limitsOf(engine, id);
    const { HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;

    const body = { CpuShares: 77, CpusetCpus: '0', CpuPeriod: 50_000, CpuQuota: 1e15 };
    const answer = await engine.post<{ message: string }>(`/containers/${id}/update`, body);

    assert.equal(answer.status, 500);
    assert.match(
      answer.body.message,
      /^Cannot update container \w+: failed to write "1000000000000000.*" to .*: invalid argument/,
    );
    assert.deepEqual(await limitsOf(engine, id), kernel);
    assert.deepEqual((await engine.get<Inspect>(`/containers/${id}/json`)).body.HostConfig, HostConfig);
    assert.equal((await engine.post(`/containers/${id}/update`, { CpuShares: 77 })).status, 200);
  });

  test('a container that restarts again and again takes its new limits with it', async () => {
    const id = await engine.run(['false'], { HostConfig: { RestartPolicy: { Name: 'always' } } });

    const statuses: number[] = [];
    for (let shares = 100; shares < 110; shares += 1) {
      statuses.push((await engine.post(`/containers/${id}/update`, { CpuShares: shares })).status);
    }

    const { HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    assert.deepEqual([new Set(statuses), HostConfig.CpuShares], [new Set([200]), 109]);
    assert.equal((await engine.post(`/containers/${id}/update`, { RestartPolicy: { Name: 'no' } })).status, 200);
  });

  test('new limits stay when the container starts again', async () => {
    const id = await engine.run(['sleep', '1000']);
    await engine.post(`/containers/${id}/update`, { CpuShares: 99, Memory: 32 * MB, MemorySwap: -1 });
    const live = await limitsOf(engine, id);

    await engine.post(`/containers/${id}/restart?t=0`);

    assert.deepEqual(await limitsOf(engine, id), live);
  });

  test('a restart policy counts for the run that goes on', async () => {
    const id = await engine.run(['sh', '-c', 'trap "exit 3" USR1; echo ready; while :; do sleep 0.1; done']);
    for await (const _line of await engine.stream('GET', `/containers/${id}/logs?stdout=1&follow=1`)) break;
    await engine.post(`/containers/${id}/update`, { RestartPolicy: { Name: 'always' } });
    const events = await engine.stream('GET', `/events?filters={"container":["${id}"],"event":["start"]}`);

    await engine.post(`/containers/${id}/kill?signal=USR1`);

    for await (const _start of events) break;
    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
    assert.ok(body.RestartCount >= 1);
  });

  test('each update emits one event, a refused one none', async () => {
    const id = await engine.create(['true'], {}, 'told');
    await engine.post('/containers/told/update', { CpuShares: 5 });
    await engine.post('/containers/told/update', { Memory: 1 });

    const now = Math.floor(Date.now() / 1000) + 1;
    const { raw } = await engine.get(`/events?since=1&until=${now}&filters={"container":["${id}"],"event":["update"]}`);

    const [event, ...others] = raw.toString().trim().split('\n');
    assert.equal((JSON.parse(event!) as { Actor: { Attributes: { name: string } } }).Actor.Attributes.name, 'told');
    assert.deepEqual(others, []);
  });

  test('an update that a killed daemon had half done is taken back', async () => {
    const id = await engine.run(['sleep', '1000']);
    const kernel = await limitsOf(engine, id);
    const updates = Array.from({ length: 40 }, (_, at) =>
      engine
        .post(`/containers/${id}/update`, { CpuShares: 100 + at, CpusetCpus: String(at % 2) })
        .catch(() => undefined),
    );
    await updates[10];
    await engine.kill();
    await Promise.all(updates);

    await engine.startAgain();

    const { HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    const live = await limitsOf(engine, id);
    if (cgroups.version === 1) assert.equal(live['cpu.shares'], String(HostConfig.CpuShares));
    assert.equal(live['cpuset.cpus'], HostConfig.CpusetCpus);
    assert.notDeepEqual(live, kernel);
  });

  test('updates, starts, stops and pauses at the same time leave record and kernel alike', async () => {
    const id = await engine.run(['sleep', '1000']);
    const paths = ['start', 'stop?t=0', 'pause', 'unpause', 'restart?t=0'];
    const work = Array.from({ length: 60 }, async (_, turn) => {
      const path = turn % 2 === 0 ? 'update' : paths[(turn >> 1) % paths.length]!;
      return await engine.post(`/containers/${id}/${path}`, turn % 2 === 0 ? { CpuShares: 10 + turn } : undefined);
    });
    const statuses = (await Promise.all(work)).map(({ status }) => status);

    await engine.post(`/containers/${id}/unpause`);
    await engine.post(`/containers/${id}/start`);

    assert.ok(statuses.every((status) => status < 600));
    assert.ok(
      statuses.filter((_, turn) => turn % 2 === 0).every((status) => status === 200),
      String(statuses),
    );
    const { HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    if (cgroups.version === 1) assert.equal((await limitsOf(engine, id))['cpu.shares'], String(HostConfig.CpuShares));
  });

  // On version 2 the limit of swap is a file of its own, which dockerd's rows above do not read.
  if (cgroups.version === 1) {
    test('an update to unlimited swap counts for the running container', async () => {
      const id = await engine.run(['sleep', '1000'], { HostConfig: { Memory: 64 * MB, MemorySwap: 128 * MB } });
      const limit = async (): Promise<number> => Number((await limitsOf(engine, id))['memory.memsw.limit_in_bytes']);
      const before = await limit();

      assert.equal((await engine.post(`/containers/${id}/update`, { MemorySwap: -1 })).status, 200);

      assert.equal(before, 128 * MB);
      assert.ok((await limit()) > 2 ** 60);
    });
  }

  test('docker update changes limits and policy', async () => {
    const id = await engine.run(['sleep', '1000']);

    const { code, stdout } = await engine.docker('update', '--cpu-shares', '300', '--restart', 'on-failure:2', id);

    const { HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    assert.deepEqual([code, stdout], [0, `${id}\n`]);
    assert.deepEqual(HostConfig.RestartPolicy, { Name: 'on-failure', MaximumRetryCount: 2 });
    assert.equal(HostConfig.CpuShares, 300);
  });
});

/** Limits in the kernel, wherever the cgroup is. */
async function limitsOf(api: Api, id: string): Promise<Record<string, string>> {
  const { Pid } = (await api.get<Inspect>(`/containers/${id}/json`)).body.State;
  const groups = readFileSync(`/proc/${Pid}/cgroup`, 'utf8');
  const read = ([controller, file]: (typeof FILES)[number]): [string, string] => {
    const line =
      cgroups.version === 2 ? /^0::(.*)$/m : new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, 'm');
    const path = join(cgroups.controllers.get(controller)!, line.exec(groups)![1]!, file);
    return [file, readFileSync(path, 'utf8').trim()];
  };
  return Object.fromEntries(FILES.map(read));
}
