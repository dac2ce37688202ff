import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';

import { BothEngines, type Side } from '../clients/both-engines.ts';
import { said } from './said.ts';

type Fields = Record<string, unknown>;

/** A field of HostConfig, where it is written on version 1 and on version 2. */
type Row = Readonly<{ field: string; version1: string; version2: string; only?: RegExp }>;

const DISK = `/dev/${globSync('/sys/block/vd*')[0]!.split('/').at(-1)}`;
const [MAJOR_MINOR = ''] = readFileSync(`/sys/class/block/${DISK.slice(5)}/dev`, 'utf8').split('\n');

const CPU: Row[] = [
  { field: 'CpuShares', version1: 'cpu.shares', version2: 'cpu.weight' },
  { field: 'CpuPeriod, CpuQuota, NanoCpus', version1: 'cpu.cfs_period_us, cpu.cfs_quota_us', version2: 'cpu.max' },
  { field: 'CpusetCpus', version1: 'cpuset.cpus', version2: 'cpuset.cpus' },
  { field: 'CpusetMems', version1: 'cpuset.mems', version2: 'cpuset.mems' },
];
const MEMORY: Row[] = [
  { field: 'Memory', version1: 'memory.limit_in_bytes', version2: 'memory.max' },
  { field: 'MemorySwap', version1: 'memory.memsw.limit_in_bytes', version2: 'memory.swap.max' },
  { field: 'MemoryReservation', version1: 'memory.soft_limit_in_bytes', version2: 'memory.low' },
];
const REST: Row[] = [
  { field: 'PidsLimit', version1: 'pids.max', version2: 'pids.max' },
  { field: 'BlkioWeight', version1: 'blkio.weight', version2: 'io.weight' },
  { field: 'BlkioWeight', version1: 'blkio.bfq.weight', version2: 'io.bfq.weight' },
  {
    field: 'BlkioDeviceReadBps, …WriteBps, …ReadIOps, …WriteIOps',
    version1: 'blkio.throttle.*_device',
    version2: 'io.max',
  },
];
const ALL = [...CPU, ...MEMORY, ...REST];

const MB = 1024 * 1024;
const throttle = (Rate: number): Fields[] => [{ Path: DISK, Rate }];

/** Containers, and the rows that are looked at in each. */
const CONTAINERS: readonly (readonly [Fields, readonly Row[]])[] = [
  [{}, ALL],
  [
    {
      ...{ CpuShares: 512, CpuPeriod: 50_000, CpuQuota: 20_000, CpusetCpus: '1', CpusetMems: '0' },
      ...{ Memory: 64 * MB, MemorySwap: 96 * MB, MemoryReservation: 32 * MB },
      ...{ PidsLimit: 77, BlkioWeight: 300 },
      BlkioDeviceReadBps: throttle(4 * MB),
      BlkioDeviceWriteBps: throttle(5 * MB),
      BlkioDeviceReadIOps: throttle(600),
      BlkioDeviceWriteIOps: throttle(700),
    },
    ALL,
  ],
  [{ CpuShares: 2, NanoCpus: 1_500_000_000, Memory: 32 * MB, PidsLimit: -1, BlkioWeight: 10 }, ALL],
  [
    { CpuShares: 262_144, CpuQuota: 30_000, Memory: 32 * MB, MemorySwap: -1, BlkioWeight: 1000 },
    [...CPU, ...MEMORY, ...REST],
  ],
  [{ BlkioDeviceReadBps: throttle(4 * MB) }, REST],
  [{ Memory: 32 * MB, MemorySwap: 32 * MB, KernelMemory: 16 * MB, MemorySwappiness: 10, OomKillDisable: true }, MEMORY],
];

suite('limits of version 2', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => (engines = await BothEngines.start()));
  after(async () => await engines[Symbol.asyncDispose]());

  test('each limit is written as dockerd writes it', async (t) => {
    const lines = ['| HostConfig | v1 file | v2 file | dockerd | Gantry |', '|---|---|---|---|---|'];
    const different: string[] = [];
    for (const [HostConfig, rows] of CONTAINERS) {
      const { ours, theirs } = await engines.both(async (side) => await filesOf(side, HostConfig, rows));
      rows.forEach(({ field, version1, version2 }, index) => {
        const asked = field
          .split(', ')
          .flatMap((name) => (name in HostConfig ? [`${name} ${text(HostConfig[name])}`] : []));
        const line = `| ${asked.join(', ') || `no ${field}`} | ${version1} | ${version2} | ${theirs[index]} | ${ours[index]} |`;
        lines.push(line);
        if (ours[index] !== theirs[index]) different.push(line);
      });
    }

    t.diagnostic(`\n${lines.join('\n')}`);
    assert.deepEqual(different, []);
  });

  test('weights of devices are written as dockerd writes them, with the scheduler BFQ; without it nothing is refused', async (t) => {
    const rows = REST.filter(({ field }) => field === 'BlkioWeight');
    const weights: Fields[] = [
      { BlkioWeightDevice: [{ Path: DISK, Weight: 500 }] },
      { BlkioWeight: 300, BlkioWeightDevice: [{ Path: DISK, Weight: 500 }] },
    ];
    for (const HostConfig of weights) {
      const { ours, theirs } = await engines.both(async (side) => await filesOf(side, HostConfig, rows));

      assert.deepEqual([HostConfig, ours], [HostConfig, theirs]);
      assert.equal(ours[1], 'none');
    }
    const scheduler = `/sys/block/${DISK.slice(5)}/queue/scheduler`;
    execFileSync('modprobe', ['bfq']);
    t.after(() => writeFileSync(scheduler, 'none'));
    writeFileSync(scheduler, 'bfq');
    for (const HostConfig of weights) {
      const { ours, theirs } = await engines.both(async (side) => await filesOf(side, HostConfig, rows));

      // The other file, which BFQ does not read, has what systemd was told of: nothing by dockerd.
      assert.deepEqual([HostConfig, ours[1]], [HostConfig, theirs[1]]);
      assert.match(ours[1]!, /disk 500/);
    }
  });

  test('a process that is killed for its memory is told, be it the first one or another', async () => {
    const HostConfig = { Memory: 24 * MB, MemorySwap: 24 * MB, NetworkMode: 'none' };
    for (const script of ['(tail /dev/zero); exit 5', 'exec tail /dev/zero']) {
      const { ours, theirs } = await engines.both(async ({ api }) => await endOf(api, script, HostConfig));

      assert.deepEqual([script, ours], [script, theirs]);
    }
  });

  test('memory beyond the limit goes into swap, up to its limit', async () => {
    // Without the shell's word about what was killed, which comes at any time.
    const hold =
      '(head -c 48m /dev/zero | tail -c 48m | wc -c) 2>/dev/null; grep oom_kill /sys/fs/cgroup/memory.events';
    const amounts: Fields[] = [
      { Memory: 24 * MB, MemorySwap: 24 * MB }, // the first process of a newer runc needs more than 12
      { Memory: 24 * MB, MemorySwap: 96 * MB },
    ];
    for (const HostConfig of amounts) {
      const { ours, theirs } = await engines.both(async (side) => await said(side, hold, HostConfig));

      assert.deepEqual([HostConfig, ours], [HostConfig, theirs]);
      assert.match(ours, HostConfig['MemorySwap'] === 24 * MB ? /oom_kill 1\n/ : /^50331648\noom_kill 0\n/);
    }
  });

  test('a container that divides its own cgroup is still one to execs, limits and the end', async () => {
    // Version 2 has no processes in an inner cgroup whose controllers are shared out.
    const divide = `cd /sys/fs/cgroup && mkdir inner && for p in $(cat cgroup.procs); do echo $p >inner/cgroup.procs; done
      echo +memory +pids >cgroup.subtree_control && cat cgroup.subtree_control; exec sleep 1000`;
    const { ours, theirs } = await engines.both(async ({ api }) => {
      const id = await started(api, divide, { NetworkMode: 'none', Privileged: true, Memory: 48 * MB });
      await lines(api, id, /memory/);
      const exec = await execOutput(api, id, [
        'sh',
        '-c',
        'cat /proc/self/cgroup >/dev/null; cat /sys/fs/cgroup/memory.max',
      ]);
      const { body } = await api.get<{ Processes: string[][] }>(`/containers/${id}/top`);
      const update = await api.post(`/containers/${id}/update`, { Memory: 40 * MB, MemorySwap: 40 * MB });
      const updated = await execOutput(api, id, ['cat', '/sys/fs/cgroup/memory.max']);
      const stats = await api.get<{ pids_stats: { current: number } }>(`/containers/${id}/stats?stream=0`);
      const removed = await api.delete(`/containers/${id}?force=1`);
      return {
        ...{ exec, processes: body.Processes.length, update: update.status, updated, removed: removed.status },
        pids: stats.body.pids_stats.current,
      };
    });

    assert.deepEqual(ours, theirs);
  });

  test('a paused container is frozen, and an exec is in its cgroup', async () => {
    const { ours, theirs } = await engines.both(async ({ api }) => {
      const id = await started(api, 'sleep 1000', { NetworkMode: 'none', Memory: 48 * MB });
      const exec = await execOutput(api, id, ['cat', '/proc/self/cgroup', '/sys/fs/cgroup/memory.max']);
      await api.post(`/containers/${id}/pause`);
      const { body } = await api.get<{ State: { Pid: number } }>(`/containers/${id}/json`);
      const path = readFileSync(`/proc/${body.State.Pid}/cgroup`, 'utf8').trim().slice(3);
      const frozen = readFileSync(`/sys/fs/cgroup${path}/cgroup.events`, 'utf8');
      await api.post(`/containers/${id}/unpause`);
      const thawed = readFileSync(`/sys/fs/cgroup${path}/cgroup.events`, 'utf8');
      await api.delete(`/containers/${id}?force=1`);
      return { exec, frozen, thawed, place: path.replace(/(gantry|docker)-[0-9a-f]{64}/, 'ID') };
    });

    assert.deepEqual(ours, theirs);
    assert.match(ours.frozen, /frozen 1/);
  });
});

function text(value: unknown): string {
  return Array.isArray(value) ? (value as { Rate: number }[]).map(({ Rate }) => Rate).join() : String(value);
}

async function filesOf(side: Side, HostConfig: Fields, rows: readonly Row[]): Promise<string[]> {
  const files = rows.map(({ version2 }) => version2).join(' ');
  const script = `cd /sys/fs/cgroup; for f in ${files}; do [ -e $f ] && tr '\\n' ' ' <$f || printf none; echo; done`;
  const lines = (await said(side, script, HostConfig)).split('\n');
  return lines.map((line) => line.trim().replaceAll(MAJOR_MINOR, 'disk'));
}

async function started(api: Api, script: string, HostConfig: Fields): Promise<string> {
  const body = { Image: 'busybox', Cmd: ['sh', '-c', script], HostConfig };
  const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
  await api.post(`/containers/${Id}/start`);
  return Id;
}

/** Waits until it has written such a line. */
async function lines(api: Api, id: string, such: RegExp): Promise<void> {
  for (const deadline = Date.now() + 300_000; Date.now() < deadline; await setTimeout(200)) {
    if (such.test((await api.get(`/containers/${id}/logs?stdout=1&stderr=1`)).raw.toString())) return;
  }
  throw new Error(`${id} has not said ${such}`);
}

async function endOf(api: Api, script: string, HostConfig: Fields): Promise<unknown> {
  const id = await started(api, script, HostConfig);
  await api.post(`/containers/${id}/wait`);
  const { State } = (await api.get<{ State: Fields }>(`/containers/${id}/json`)).body;
  const filters = encodeURIComponent(JSON.stringify({ container: [id], event: ['oom', 'die'] }));
  const until = Math.ceil(Date.now() / 1000) + 1;
  const events = (await api.get(`/events?since=0&until=${until}&filters=${filters}`)).raw.toString();
  await api.delete(`/containers/${id}`);
  return { OOMKilled: State['OOMKilled'], ExitCode: State['ExitCode'], oom: events.includes('"oom"') };
}

async function execOutput(api: Api, id: string, Cmd: string[]): Promise<string> {
  const made = await api.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd, AttachStdout: true, Tty: true });
  return (await api.post(`/exec/${made.body.Id}/start`, { Tty: true })).raw.toString();
}
