/**
 * `./gantry bench health [CONTAINERS] [SECONDS]`: the share of a core that the daemon needs for health checks of so many
 * containers, one in so many seconds each.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { Row } from './measure.ts';

/** An engine, and the process whose CPU time counts. */
type Side = Readonly<{ api: Api; pid: number }>;

/** CPU time in milliseconds. */
type Spent = Readonly<{ daemon: number; tree: number }>;

type Checked = Side & Readonly<{ ids: string[] }>;

const CHECKED = 200;
/** A check by dockerd's runc takes so much of the machine that it could not do more of them beside ours. */
const CHECK_EVERY_SECONDS = 60;
const [DEFAULT_COUNT, DEFAULT_SECONDS] = [1000, 30];
const SHARE_OF_CORE = 0.1;
const ROUNDS = 3;
const AT_ONCE = 4;

export const HEALTH_CHECKS = `CPU of a health check (${CHECKED} running, one in ${CHECK_EVERY_SECONDS} s)`;
const WHOLE = 'the same with all child processes, shims and runtimes';

/**
 * Processor time of both daemons at the same time, for one check: first of the daemon, dockerd with its containerd; then with the shims
 * and the runtime. Both engines have the image `busybox`.
 */
export async function healthCheckCpu(ours: Side, theirs: Side): Promise<Row[]> {
  const sides: [Checked, Checked] = [
    { ...ours, ids: [] },
    { ...theirs, ids: [] },
  ];
  await Promise.all(sides.map(async (side) => await startChecked(side, CHECKED, CHECK_EVERY_SECONDS)));
  await setTimeout(CHECK_EVERY_SECONDS * 1000); // the first check of all
  const before = sides.map(spentBy);
  await setTimeout(CHECK_EVERY_SECONDS * 1000);
  const [mine, other] = sides.map((side, index) => {
    const after = spentBy(side);
    return {
      daemon: (after.daemon - before[index]!.daemon) / CHECKED,
      tree: (after.tree - before[index]!.tree) / CHECKED,
    };
  }) as [Spent, Spent];
  for (const { api, ids } of sides) await areChecked(api, ids);
  await Promise.all(sides.map(async ({ api, ids }) => await removeAll(api, ids)));
  return (['daemon', 'tree'] as const).map((part) => {
    const name = part === 'daemon' ? HEALTH_CHECKS : WHOLE;
    return {
      name,
      unit: 'ms',
      ours: mine[part],
      theirs: other[part],
      ratio: mine[part] / other[part],
      atMost: 0.5,
    };
  });
}

export async function main(count = String(DEFAULT_COUNT), seconds = String(DEFAULT_SECONDS)): Promise<void> {
  await using engine = await TestEngine.start();
  const side: Checked = { api: engine, pid: engine.pid, ids: [] };
  await startChecked(side, Number(count), Number(seconds));
  await setTimeout(Number(seconds) * 1000);
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = { ...spentBy(side), at: performance.now() };
    await setTimeout(Number(seconds) * 1000);
    const after = spentBy(side);
    const passed = performance.now() - before.at;
    const [daemon, tree] = [(after.daemon - before.daemon) / passed, (after.tree - before.tree) / passed];
    const verdict = daemon <= SHARE_OF_CORE ? 'met' : 'NOT MET';
    console.log(
      `${count} containers, one check in ${seconds} s: ${percent(daemon)} of a core, with shims and runtimes ` +
        `${percent(tree)}; budget ${percent(SHARE_OF_CORE)}: ${verdict}`,
    );
  }
  await areChecked(engine, side.ids);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

async function startChecked({ api, ids }: Checked, count: number, everySeconds: number): Promise<void> {
  const body = {
    Image: 'busybox',
    Cmd: ['sleep', '100000'],
    Healthcheck: { Test: ['CMD', 'true'], Interval: everySeconds * 1e9 },
    HostConfig: { NetworkMode: 'none' },
  };
  await atOnce(Array.from({ length: count }), async () => {
    const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
    const started = await api.post(`/containers/${Id}/start`);
    if (started.status !== 204) throw new Error(`start answered ${started.status}: ${started.raw.toString()}`);
    ids.push(Id);
  });
}

async function removeAll(api: Api, ids: readonly string[]): Promise<void> {
  await atOnce(ids, async (id) => void (await api.delete(`/containers/${id}?force=1`)));
}

async function atOnce<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    while (left.length > 0) await work(left.pop()!);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Each has succeeded at least twice, or the figure would be that of less work. */
async function areChecked(api: Api, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const { body } = await api.get<{ State: { Health: { Log: { ExitCode: number }[] } } }>(`/containers/${id}/json`);
    const good = body.State.Health.Log.filter(({ ExitCode }) => ExitCode === 0).length;
    if (good < 2) throw new Error(`${id} has succeeded ${good} times: ${JSON.stringify(body.State.Health)}`);
  }
}

type Process = Readonly<{ pid: number; parent: number; name: string; own: number; withEnded: number }>;

/** The daemon with a containerd below it, and both with the shims of its containers and all that these have run. */
function spentBy({ pid, ids }: Checked): Spent {
  const all = processes();
  const daemons = all.filter((each) => each.pid === pid || (each.parent === pid && each.name.startsWith('containerd')));
  const shims = all.filter(({ pid: shim, name }) => /shim/.test(name) && isShimOf(shim, ids));
  return {
    daemon: daemons.reduce((sum, { own }) => sum + own, 0),
    tree: [...daemons, ...shims].reduce((sum, { withEnded }) => sum + withEnded, 0),
  };
}

function isShimOf(pid: number, ids: readonly string[]): boolean {
  const words = new Set(textOf(`/proc/${pid}/cmdline`).split(/[\0/]/));
  return ids.some((id) => words.has(id));
}

function processes(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), stat: textOf(`/proc/${name}/stat`) }))
    .filter(({ stat }) => stat !== '')
    .map(({ pid, stat }) => {
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const [user, kernel, endedUser, endedKernel] = fields.slice(11, 15).map((ticks) => Number(ticks) * 10);
      const own = user! + kernel!;
      return { pid, parent: Number(fields[1]), name, own, withEnded: own + endedUser! + endedKernel! };
    });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}
