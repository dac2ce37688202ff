import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { BothEngines, type Side } from '../clients/both-engines.ts';
import { said } from './said.ts';

type Fields = Record<string, unknown>;

/** Fields of /info about the machine. */
const SEEN_BY_BOTH =
  `CgroupDriver CgroupVersion MemoryLimit SwapLimit KernelMemory KernelMemoryTCP CpuCfsPeriod CpuCfsQuota
  CPUShares CPUSet PidsLimit OomKillDisable IPv4Forwarding BridgeNfIptables BridgeNfIp6tables KernelVersion
  OperatingSystem OSVersion NCPU MemTotal SecurityOptions`.split(/\s+/);

const LIMITED = { Memory: 64 << 20, CpuPeriod: 100_000, CpuQuota: 50_000, PidsLimit: 77 };

/** Questions to a container, with their fields of HostConfig. */
const QUESTIONS: readonly (readonly [string, string, Fields])[] = [
  ['a container sees itself at the root of its cgroups', 'cat /proc/self/cgroup', {}],
  [
    'it reads its own limits, by which programs choose their size',
    'cd /sys/fs/cgroup && cat memory.max memory.swap.max cpu.max pids.max',
    LIMITED,
  ],
  ['it cannot change them', 'echo max >/sys/fs/cgroup/memory.max; mkdir /sys/fs/cgroup/x', LIMITED],
  ['its cgroup is mounted read-only', "grep cgroup /proc/self/mountinfo | cut -d' ' -f4-6", {}],
  ['a privileged one has it writable', "grep cgroup /proc/self/mountinfo | cut -d' ' -f4-6", { Privileged: true }],
  ['a privileged one sees itself at the root', 'cat /proc/self/cgroup', { Privileged: true }],
  [
    'with the namespace of the host it sees where it is',
    "sed -E 's/gantry|docker/engine/; s/[0-9a-f]{64}/ID/' /proc/self/cgroup",
    { CgroupnsMode: 'host' },
  ],
];

/** Settings that version 2 has nothing for, and others that it has. */
const WARNED: readonly Fields[] = [
  { Memory: 64 << 20, MemorySwap: 128 << 20 },
  { Memory: 64 << 20, MemorySwappiness: 50 },
  { Memory: 64 << 20, OomKillDisable: true },
  { OomKillDisable: true },
  { Memory: 64 << 20, KernelMemory: 32 << 20 },
  { MemoryReservation: 32 << 20 },
  { BlkioWeight: 300 },
  { CpuShares: 512, CpuPeriod: 50_000, CpuQuota: 20_000, CpusetCpus: '0' },
  { PidsLimit: 50 },
  { BlkioWeightDevice: [{ Path: '/dev/vda', Weight: 500 }] },
];

suite('a machine with cgroup version 2', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => (engines = await BothEngines.start()));
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [what, script, HostConfig] of QUESTIONS) {
    test(`${what}, as with dockerd`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await said(side, script, HostConfig));

      assert.equal(ours, theirs);
    });
  }

  test('a folder that a privileged container makes among its cgroups is not the host’s', async () => {
    const before = readdirSync('/sys/fs/cgroup');

    const out = await said(engines.ours, 'mkdir /sys/fs/cgroup/mine && ls -d /sys/fs/cgroup/mine', {
      Privileged: true,
    });

    assert.equal(out, '/sys/fs/cgroup/mine\n');
    assert.deepEqual(readdirSync('/sys/fs/cgroup'), before);
    assert.equal(existsSync('/sys/fs/cgroup/mine'), false);
  });

  test("/info shows dockerd's view of the machine", async () => {
    const { ours, theirs } = await engines.both(async ({ api }) => (await api.get<Fields>('/info')).body);

    assert.deepEqual(pick(ours), pick(theirs));
  });

  test('create warns of unsupported fields, and of nothing else', async () => {
    const { ours, theirs } = await engines.both(async (side) => {
      const answers: unknown[] = [];
      for (const HostConfig of WARNED) answers.push([HostConfig, ...(await warningsOf(side, HostConfig))]);
      return answers;
    });

    assert.deepEqual(ours, theirs);
  });

  test('limits of real-time processes are refused in dockerd’s words, as the client’s mistake', async () => {
    const HostConfig = { CpuRealtimePeriod: 1_000_000, CpuRealtimeRuntime: 100_000 };
    const { ours, theirs } = await engines.both(async (side) => await warningsOf(side, HostConfig));

    assert.equal(theirs[0], 500);
    assert.deepEqual(ours, [400, theirs[1]]);
  });
});

function pick(info: Fields): Fields {
  return Object.fromEntries(SEEN_BY_BOTH.map((name) => [name, info[name]]));
}

async function warningsOf({ api }: Side, HostConfig: Fields): Promise<[number, unknown]> {
  const { status, body } = await api.post<{ Warnings: string[] | null }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['true'],
    HostConfig,
  });
  return [status, body.Warnings ?? body];
}
