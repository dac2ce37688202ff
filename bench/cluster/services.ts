/**
 * `./gantry bench services [part of a name]`: how long until the tasks of a service run, and how many requests fail amid its
 * updates, beside dockerd's swarm, on one node each; then on four machines each.
 */
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { SLEEPS } from '@gantry/testing/cluster/services.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { compare, tableOf, type Budget, type Row } from '../measure.ts';
import { expect, until } from './answers.ts';
import { onMachines } from './machines-rows.ts';
import { updatesUnderRequests } from './updates.ts';

const UPDATES = 'updates under requests';
const BUDGETS: Budget<Api>[] = [
  {
    name: 'service of one replica to running',
    unit: 'ms',
    atMost: 1 / 3,
    rounds: 7,
    work: async (api) => await startService(api, 1),
  },
  {
    name: '100 replicas on one node to running',
    unit: 'ms',
    atMost: 1 / 3,
    rounds: 1,
    work: async (api) => await startService(api, 100),
  },
];

export async function main(part = ''): Promise<void> {
  await onOneNode(part);
  await onMachines(part);
}

async function onOneNode(part: string): Promise<void> {
  const isAsked = [...BUDGETS.map(({ name }) => name), UPDATES].some((name) => name.includes(part));
  if (!isAsked) return;
  await using ours = await TestEngine.start();
  await using theirs = await Dockerd.start();
  await theirs.api.post('/images/load?quiet=1', await busyboxArchive());
  const rows: Row[] = [];
  for (const api of [ours, theirs.api]) {
    await expect(api, 'POST', '/swarm/init', { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' });
  }
  for (const budget of BUDGETS.filter(({ name }) => name.includes(part))) {
    rows.push(await compare(budget, ours, theirs.api));
  }
  if (rows.length > 0) console.log(tableOf(rows));
  if (UPDATES.includes(part)) await updatesUnderRequests(ours, theirs.api);
  for (const api of [ours, theirs.api]) await expect(api, 'POST', '/swarm/leave?force=1');
}

/** From the request to the last task that runs, in milliseconds. Afterwards no container of it is left. */
async function startService(api: Api, replicas: number): Promise<number> {
  const started = performance.now();
  await expect(api, 'POST', '/services/create', {
    Name: 'bench',
    TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: SLEEPS } },
    Mode: { Replicated: { Replicas: replicas } },
  });
  await until(`${replicas} tasks`, async () => {
    const tasks = await expect<{ Status: { State: string } }[]>(api, 'GET', '/tasks');
    return tasks.filter(({ Status }) => Status.State === 'running').length === replicas;
  });
  const spent = performance.now() - started;
  await expect(api, 'DELETE', '/services/bench');
  await until('no containers', async () => {
    return (await expect<unknown[]>(api, 'GET', '/containers/json?all=1')).length === 0;
  });
  return spent;
}
