import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { median, type Row } from '../measure.ts';

const NETWORKS = 200;
const CONTAINERS = 200;
const ROUNDS = 3;
const AT_ONCE = 10;

type Side = Readonly<{ api: Api; end: () => Promise<void>; begin: () => Promise<void> }>;

/** Start and end of a daemon with many networks and containers, beside dockerd. */
export async function manyNetworks(): Promise<Row[]> {
  await using engine = await TestEngine.start();
  await using dockerd = await Dockerd.start();
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  const mine = await restarts({
    api: engine,
    end: async () => await engine.kill('SIGTERM'),
    begin: async () => await engine.startAgain(),
  });
  const other = await restarts({
    api: dockerd.api,
    end: async () => await dockerd.end(),
    begin: async () => await dockerd.begin(),
  });
  return (['start', 'end'] as const).map((part) => {
    const [ours, theirs] = [median(mine[part]), median(other[part])];
    const name = `${part} of a daemon with ${NETWORKS} networks and ${CONTAINERS} containers`;
    return { name, unit: 'ms', ours, theirs, ratio: ours / theirs, atMost: 0.25 };
  });
}

/** Milliseconds to the first answer after the start, and to the end of the process. */
async function restarts({ api, end, begin }: Side): Promise<{ start: number[]; end: number[] }> {
  console.error(`making ${NETWORKS} networks and ${CONTAINERS} containers …`);
  await many(NETWORKS, async (index) => {
    await created(api, '/networks/create', {
      Name: `n${index}`,
      IPAM: { Config: [{ Subnet: `10.210.${index}.0/24` }] },
    });
  });
  await many(CONTAINERS, async (index) => {
    const body = { Image: 'busybox', Cmd: ['true'], HostConfig: { NetworkMode: `n${index % NETWORKS}` } };
    await created(api, `/containers/create?name=c${index}`, body);
  });
  const times = { start: [] as number[], end: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.end.push(await timed(end));
    times.start.push(
      await timed(async () => {
        await begin();
        await api.get('/_ping'); // dockerd accepts clients long before it answers them
      }),
    );
  }
  for (const [part, spent] of Object.entries(times)) console.error(`${part}: ${spent.map(Math.round).join(', ')} ms`);
  await many(CONTAINERS, async (index) => void (await api.delete(`/containers/c${index}`)));
  await many(NETWORKS, async (index) => void (await api.delete(`/networks/n${index}`)));
  return times;
}

async function created(api: Api, path: string, body: object): Promise<void> {
  const { status, raw } = await api.post(path, body);
  if (status !== 201) throw new Error(`${path}: ${status} ${raw.toString()}`);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function many(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
