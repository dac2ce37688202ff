/** `./gantry bench networks [part of a name]`: traffic, names, ports and networks, each as a ratio to dockerd 20.10. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { compare, tableOf, type Budget } from '../measure.ts';
import { crowdRow } from './crowd.ts';
import { Host } from './host.ts';
import { manyPortsRow } from './many-ports.ts';
import { replayRow } from './replay.ts';
import { manyNetworks } from './restarts.ts';
import { buildPeer, NetworkSubject } from './subject.ts';

type Row = Budget<NetworkSubject>;
const ms = { unit: 'ms' } as const;

const budgets: readonly Row[] = [
  { ...ms, name: '1 GB between containers', atMost: 1, rounds: 5, work: async (s) => await s.traffic('container') },
  { ...ms, name: '1 GB through a published port', atMost: 1, rounds: 5, work: async (s) => await s.traffic('outside') },
  { ...ms, name: '3,000 connections', atMost: 1, rounds: 31, work: async (s) => await s.connections('container') },
  {
    ...ms,
    name: '3,000 connections through a published port',
    atMost: 1,
    rounds: 31,
    work: async (s) => await s.connections('outside'),
  },
  {
    ...ms,
    name: '3,000 connections, of the processor',
    atMost: 1,
    rounds: 31,
    work: async (s) => await s.workOfConnections('container'),
  },
  {
    ...ms,
    name: '3,000 connections through a published port, of the processor',
    atMost: 1,
    rounds: 31,
    work: async (s) => await s.workOfConnections('outside'),
  },
  { ...ms, name: '5,000 round trips', atMost: 1, work: async (s) => await s.roundTrips('container') },
  {
    ...ms,
    name: '5,000 round trips through a published port',
    atMost: 1,
    work: async (s) => await s.roundTrips('outside'),
  },
  { ...ms, name: '20,000 names, 64 at once', atMost: 2 / 3, work: async (s) => await s.questions(64) },
  { ...ms, name: '5,000 names, one by one', atMost: 2 / 3, work: async (s) => await s.questions(1) },
  {
    ...ms,
    name: 'start with 200 published ports',
    atMost: 0.1,
    rounds: 1,
    work: async (s) => await s.startWithPorts(200),
  },
  { ...ms, name: 'network created and removed', atMost: 0.25, work: async (s) => await s.createAndRemove() },
  { ...ms, name: '50 networks at once', atMost: 0.25, rounds: 1, work: async (s) => await s.createMany(50) },
  { ...ms, name: 'run `true` on a network', atMost: 0.2, work: async (s) => await s.runTrue() },
  { ...ms, name: 'connect and disconnect', atMost: 0.25, work: async (s) => await s.connectAndDisconnect() },
];

/** Beside a dockerd that starts no process for a port: with these it takes minutes for 1,000 ports. */
const thousandPorts: Row = {
  ...ms,
  name: 'start with 1,000 published ports, dockerd without its proxies',
  atMost: 0.1,
  rounds: 1,
  work: async (s) => await s.startWithPorts(1000),
};

export async function main(only = ''): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'));
  await using parts = new AsyncDisposableStack();
  parts.defer(async () => await rm(folder, { recursive: true }));
  const peer = await buildPeer(folder);
  await compareSubjects(peer, budgets, only);
  await compareSubjects(peer, [thousandPorts], only, ['--userland-proxy=false']);
  if ('port beside 10,000'.includes(only)) print(tableOf([await manyPortsRow()]));
  if ('names in a network of 500'.includes(only)) {
    await using engine = await TestEngine.start();
    print(tableOf([await crowdRow(engine, peer)]));
  }
  if ('10,000 events replayed'.includes(only)) {
    await using engine = await TestEngine.start({ image: false });
    await using dockerd = await Dockerd.start();
    print(tableOf([await replayRow(engine, dockerd.api)]));
  }
  if ('daemon with 200 networks'.includes(only)) print(tableOf(await manyNetworks()));
}

async function compareSubjects(
  peer: string,
  rows: readonly Row[],
  only: string,
  flagsOfDockerd: readonly string[] = [],
): Promise<void> {
  const wanted = rows.filter(({ name }) => name.includes(only));
  if (wanted.length === 0) return;
  await using engine = await TestEngine.start();
  await using dockerd = await Dockerd.start(flagsOfDockerd);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  await using mine = await Host.of(engine, `--net=${engine.netns}`);
  await using other = await Host.of(dockerd.api, `--net=/proc/${dockerd.pid}/ns/net`);
  const [ours, theirs] = [new NetworkSubject(mine, peer), new NetworkSubject(other, peer)];
  await ours.prepare();
  await theirs.prepare();
  for (const budget of wanted) print(tableOf([await compare(budget, ours, theirs)]));
  await ours.clear();
  await theirs.clear();
}

/** The rows of a table, without its head. */
function print(table: string): void {
  console.log(table.split('\n').slice(2).join('\n'));
}
