import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { SLEEPS } from '@gantry/testing/cluster/services.ts';

import { compare, tableOf, type Budget } from '../measure.ts';
import { expect, until } from './answers.ts';
import { Machines, type Machine } from './machines.ts';
import { rssOf } from './usage.ts';

const execute = promisify(execFile);
const MEGABYTE = 2 ** 20;
/** Memory that a start has used goes back meanwhile. */
const IDLE_MS = 60_000;
const PORT = '5201';

const BUDGETS: readonly Budget<Machines>[] = [
  { name: '100 replicas on three hosts to running', unit: 'ms', atMost: 1 / 2, rounds: 1, work: startReplicas },
  { name: '1 GB over an overlay, from host to host', unit: 'ms', atMost: 1, rounds: 5, work: sendGigabyte },
];

/** Figures that are measured once, each with the expectation of ours. */
const ONCE: readonly Readonly<{ name: string; asked: string; measure: (machines: Machines) => Promise<string> }>[] = [
  { name: 'memory of an idle manager', asked: '150 MB', measure: async ({ managers }) => await memoryOf(managers[1]!) },
  { name: 'memory of an idle worker', asked: '100 MB', measure: async ({ worker }) => await memoryOf(worker) },
  { name: 'a node that is lost is `down`', asked: '16 s', measure: loseWorker },
  {
    name: 'the API writes again after SIGKILL of the leader',
    asked: '3 s',
    measure: async (all) => await loseLeader(all, 'kill'),
  },
  {
    name: 'the same after the loss of its host',
    asked: '3 s',
    measure: async (all) => await loseLeader(all, 'powerOff'),
  },
];

/** Four machines of each engine: three managers and a worker. */
export async function onMachines(part: string): Promise<void> {
  const budgets = BUDGETS.filter(({ name }) => name.includes(part));
  const single = ONCE.filter(({ name }) => name.includes(part));
  if (budgets.length + single.length === 0) return;
  await using ours = await Machines.start('gantry');
  await using theirs = await Machines.start('dockerd');
  const look = async ({ name, asked, measure }: (typeof ONCE)[number]): Promise<void> => {
    const figures = [await measure(theirs), await measure(ours)];
    console.log(`| ${name} | ${figures.join(' | ')} | ≤ ${asked} |`);
  };
  if (single.some(({ name }) => name.startsWith('memory'))) await sleep(IDLE_MS);
  for (const one of single.filter(({ name }) => name.startsWith('memory'))) await look(one);
  if (budgets.some(({ work }) => work === sendGigabyte)) for (const all of [ours, theirs]) await joinOverlay(all);
  for (const budget of budgets) console.log(tableOf([await compare(budget, ours, theirs)]));
  for (const one of single.filter(({ name }) => !name.startsWith('memory'))) await look(one);
}

/** From the request to the last task that runs. */
async function startReplicas({ managers: [asked] }: Machines): Promise<number> {
  const { api } = asked!;
  const started = performance.now();
  await expect(api, 'POST', '/services/create', {
    Name: 'bench',
    TaskTemplate: {
      ContainerSpec: { Image: 'busybox', Command: SLEEPS },
      Placement: { Constraints: ['node.role==manager'] },
    },
    Mode: { Replicated: { Replicas: 100 } },
  });
  const tasks = async (): Promise<{ Status: { State: string } }[]> => await expect(api, 'GET', '/tasks');
  await until('100 tasks', async () => {
    return (await tasks()).filter(({ Status }) => Status.State === 'running').length === 100;
  });
  const spent = performance.now() - started;
  await expect(api, 'DELETE', '/services/bench');
  await until('no tasks', async () => (await tasks()).length === 0);
  return spent;
}

/** A server on one machine and a client on another, in a network that both may join. */
async function joinOverlay({ all: [one, two] }: Machines): Promise<void> {
  await expect(one!.api, 'POST', '/networks/create', { Name: 'wide', Driver: 'overlay', Attachable: true });
  for (const [{ api }, name] of [
    [one!, 'server'],
    [two!, 'client'],
  ] as const) {
    const body = { Image: 'busybox', Cmd: ['sleep', '100000'], HostConfig: { NetworkMode: 'wide' } };
    await expect(api, 'POST', `/containers/create?name=${name}`, body);
    await expect(api, 'POST', `/containers/${name}/start`);
  }
}

type Inspect = { State: { Pid: number }; NetworkSettings: { Networks: { wide: { IPAddress: string } } } };

async function sendGigabyte({ all: [one, two] }: Machines): Promise<number> {
  const server = await expect<Inspect>(one!.api, 'GET', '/containers/server/json');
  const client = await expect<Inspect>(two!.api, 'GET', '/containers/client/json');
  const serving = spawn(
    'nsenter',
    [`--net=/proc/${server.State.Pid}/ns/net`, 'iperf3', '-s', '-1', '--forceflush', '-p', PORT],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ended = once(serving, 'exit');
  await Promise.race([once(serving.stdout, 'data'), ended]);
  const words = ['iperf3', '-c', server.NetworkSettings.Networks.wide.IPAddress, '-p', PORT, '-n', '1G', '-J'];
  const { stdout } = await execute('nsenter', [`--net=/proc/${client.State.Pid}/ns/net`, ...words]);
  await ended;
  const { end } = JSON.parse(stdout) as { end: { sum_received: { seconds: number } } };
  return end.sum_received.seconds * 1000;
}

async function memoryOf({ daemon }: Machine): Promise<string> {
  const path = join(daemon.directory, 'exec/etcd/pid');
  const etcd = existsSync(path) ? rssOf(Number(readFileSync(path, 'utf8'))) : 0;
  const own = rssOf(daemon.pid);
  const others = (await childrenOf(daemon.pid)).filter((pid) => nameOf(pid) === 'containerd').map(rssOf);
  const all = own + etcd + others.reduce((sum, bytes) => sum + bytes, 0);
  return `${(all / MEGABYTE).toFixed(0)} MB`;
}

async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await execute('ps', ['-o', 'pid=', '--ppid', String(pid)]).catch(() => ({ stdout: '' }));
  return stdout.trim().split('\n').filter(Boolean).map(Number);
}

function nameOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
}

async function loseWorker(machines: Machines): Promise<string> {
  const { worker } = machines;
  await worker.powerOff();
  const lost = performance.now();
  await until('the node is down', async () => {
    const nodes = await machines.nodes();
    return nodes.some(({ Description, Status }) => Description.Hostname === worker.name && Status.State === 'down');
  });
  const spent = performance.now() - lost;
  await worker.begin();
  await machines.settled();
  return `${(spent / 1000).toFixed(1)} s`;
}

/** Until another manager has stored a write: one is asked every 50 ms. */
async function loseLeader(machines: Machines, how: 'kill' | 'powerOff'): Promise<string> {
  const leader = await machines.leader();
  const other = machines.managers.find((manager) => manager !== leader)!;
  await leader[how]();
  const lost = performance.now();
  const names: string[] = [];
  const asking: Promise<void>[] = [];
  for (let number = 0; names.length === 0; number += 1) {
    const Name = `after-${how}-${number}`;
    const TaskTemplate = { ContainerSpec: { Image: 'busybox' } };
    const ask = async (): Promise<void> => {
      const body = { Name, TaskTemplate, Mode: { Replicated: { Replicas: 0 } } };
      if ((await other.api.post('/services/create', body)).status !== 201) return;
      names.push(Name);
    };
    asking.push(ask().catch(() => undefined));
    await sleep(50);
  }
  const spent = performance.now() - lost;
  await Promise.all(asking);
  for (const name of names) await expect(other.api, 'DELETE', `/services/${name}`);
  await leader.begin();
  await machines.settled();
  return `${(spent / 1000).toFixed(1)} s`;
}
