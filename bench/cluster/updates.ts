import { existsSync } from 'node:fs';

import type { Api } from '@gantry/testing/api.ts';
import { Traffic } from '@gantry/testing/cluster/traffic.ts';
import { HASTY_WEB, makeWebImage, POLITE_WEB } from '@gantry/testing/cluster/web.ts';

import { expect, until } from './answers.ts';

const SECOND_NS = 1e9;
const ROUNDS = 3;

type Case = Readonly<{ name: string; mode: 'vip' | 'dnsrr'; path?: string; container: object; update: object }>;
type Task = { Status: { State: string; ContainerStatus?: { PID: number } }; DesiredState: string };

const HASTY = { Command: HASTY_WEB };
const POLITE = { Command: POLITE_WEB, StopGracePeriod: 60 * SECOND_NS };
const [TWO, FIRST] = [
  { Parallelism: 2, Monitor: SECOND_NS },
  { Parallelism: 0, Monitor: SECOND_NS, Order: 'start-first' },
];
const CASES: readonly Case[] = (['dnsrr', 'vip'] as const).flatMap((mode) => [
  { name: 'tasks that end at once, two at a time', mode, container: HASTY, update: TWO },
  { name: 'the same, all at once and the new ones first', mode, container: HASTY, update: FIRST },
  {
    name: 'requests of a second, to tasks that go on for three',
    mode,
    path: 'cgi-bin/slow',
    container: POLITE,
    update: TWO,
  },
]);

/**
 * Five tasks are updated under requests of a container in their network, each over a connection of its own: how many fail. dockerd
 * balances virtual addresses by IPVS; where the kernel has none, only names that lead to the tasks can be compared.
 */
export async function updatesUnderRequests(ours: Api, theirs: Api): Promise<void> {
  for (const api of [ours, theirs]) {
    await makeWebImage(api);
    await expect(api, 'POST', '/networks/create', { Name: 'front', Driver: 'overlay' });
    await runService(api, 'asking', 1, {
      ContainerSpec: { Image: 'busybox', Command: ['sleep', '100000'], StopGracePeriod: 0 },
    });
  }
  console.log('| five tasks updated under requests | by | dockerd | gantry |\n|---|---|---|---|');
  for (const one of CASES) {
    const told: string[] = [];
    for (const api of [theirs, ours]) {
      if (api === theirs && one.mode === 'vip' && !existsSync('/proc/net/ip_vs')) told.push('no IPVS here');
      else told.push(await failures(api, one));
    }
    console.log(`| ${one.name} | ${one.mode} | ${told.join(' | ')} |`);
  }
  for (const api of [ours, theirs]) {
    await remove(api, 'asking');
    await expect(api, 'DELETE', '/networks/front');
  }
}

/** How many requests of how many failed in some updates, and why. */
async function failures(api: Api, { mode, path = '', container, update }: Case): Promise<string> {
  const template = (version: number): object => {
    return { ContainerSpec: { Image: 'web', Env: [`VERSION=${version}`], ...container } };
  };
  await runService(api, 'web', 5, template(0), { UpdateConfig: update, EndpointSpec: { Mode: mode } });
  const [asking] = await running(api, 'asking');
  const netns = `/proc/${asking!.Status.ContainerStatus!.PID}/ns/net`;
  const reasons = new Map<string, number>();
  let [all, failed] = [0, 0];
  for (let round = 1; round <= ROUNDS; round += 1) {
    await using traffic = new Traffic(netns, [`http://web/${path}`]);
    type Service = { ID: string; Version: { Index: number }; Spec: object };
    const { ID, Version, Spec } = await expect<Service>(api, 'GET', '/services/web');
    await expect(api, 'POST', `/services/${ID}/update?version=${Version.Index}`, {
      ...Spec,
      TaskTemplate: template(round),
    });
    await until('the end of an update', async () => {
      const { UpdateStatus } = await expect<{ UpdateStatus?: { State: string } }>(api, 'GET', '/services/web');
      return UpdateStatus?.State === 'completed';
    });
    const counts = await traffic.end();
    all += counts.ok + counts.failed;
    failed += counts.failed;
    for (const [reason, times] of Object.entries(counts.reasons))
      reasons.set(reason, (reasons.get(reason) ?? 0) + times);
  }
  await remove(api, 'web');
  const why = [...reasons].map(([reason, times]) => `${times} × ${reason}`).join(', ');
  return `${failed} of ${all}${why === '' ? '' : ` (${why})`}`;
}

async function runService(api: Api, Name: string, Replicas: number, TaskTemplate: object, more = {}): Promise<void> {
  const body = { Name, TaskTemplate, Mode: { Replicated: { Replicas } }, Networks: [{ Target: 'front' }], ...more };
  await expect(api, 'POST', '/services/create', body);
  await until(`${Replicas} tasks of ${Name}`, async () => (await running(api, Name)).length === Replicas);
}

async function running(api: Api, service: string): Promise<Task[]> {
  const filters = encodeURIComponent(JSON.stringify({ service: [service], 'desired-state': ['running'] }));
  const tasks = await expect<Task[]>(api, 'GET', `/tasks?filters=${filters}`);
  return tasks.filter(({ Status }) => Status.State === 'running');
}

async function remove(api: Api, service: string): Promise<void> {
  await expect(api, 'DELETE', `/services/${service}`);
  await until('no containers', async () => {
    const list = await expect<{ Names: string[] }[]>(api, 'GET', '/containers/json?all=1');
    return !list.some(({ Names }) => Names[0]!.startsWith(`/${service}.`));
  });
}
