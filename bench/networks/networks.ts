/** `./gantry bench networks [part of a name]`: traffic, names, ports and networks, each as a ratio to dockerd 20.10. */
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { compare, tableOf, type Budget } from '../measure.ts';
import { Host } from './host.ts';
import { NetworkSubject } from './subject.ts';

type Row = Budget<NetworkSubject>;
const ms = { unit: 'ms' } as const;

const budgets: readonly Row[] = [
  { ...ms, name: '1 GB between containers', atMost: 1, rounds: 5, work: async (s) => await s.traffic('container') },
  { ...ms, name: '1 GB through a published port', atMost: 1, rounds: 5, work: async (s) => await s.traffic('outside') },
  { ...ms, name: '3,000 connections', atMost: 1, rounds: 5, work: async (s) => await s.connections('container') },
  {
    ...ms,
    name: '3,000 connections through a published port',
    atMost: 1,
    rounds: 5,
    work: async (s) => await s.connections('outside'),
  },
  { ...ms, name: '5,000 round trips', atMost: 1, rounds: 5, work: async (s) => await s.roundTrips('container') },
  {
    ...ms,
    name: '5,000 round trips through a published port',
    atMost: 1,
    rounds: 5,
    work: async (s) => await s.roundTrips('outside'),
  },
  { ...ms, name: '20,000 names, 64 at once', atMost: 2 / 3, rounds: 5, work: async (s) => await s.questions(64) },
  { ...ms, name: '5,000 names, one by one', atMost: 2 / 3, rounds: 5, work: async (s) => await s.questions(1) },
  {
    ...ms,
    name: 'start with 1,000 published ports',
    atMost: 0.1,
    rounds: 1,
    work: async (s) => await s.startWithPorts(),
  },
  { ...ms, name: 'network created and removed', atMost: 0.25, work: async (s) => await s.createAndRemove() },
  { ...ms, name: '50 networks at once', atMost: 0.25, rounds: 1, work: async (s) => await s.createMany(50) },
  { ...ms, name: 'run `true` on a network', atMost: 0.2, work: async (s) => await s.runTrue() },
  { ...ms, name: 'connect and disconnect', atMost: 0.25, work: async (s) => await s.connectAndDisconnect() },
];

export async function main(only = ''): Promise<void> {
  await using engine = await TestEngine.start();
  await using dockerd = await Dockerd.start();
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  await using mine = await Host.of(engine, `--net=${engine.netns}`);
  await using other = await Host.of(dockerd.api, `--net=/proc/${dockerd.pid}/ns/net`);
  const [ours, theirs] = [new NetworkSubject(mine), new NetworkSubject(other)];
  await ours.prepare();
  await theirs.prepare();
  for (const budget of budgets.filter(({ name }) => name.includes(only))) {
    console.log(
      tableOf([await compare(budget, ours, theirs)])
        .split('\n')
        .at(-1),
    );
  }
  await ours.clear();
  await theirs.clear();
}
