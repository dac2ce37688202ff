/** The engine's budgets, each as a ratio to dockerd 20.10 in the same run through the same raw client. */
import { readFileSync, globSync } from 'node:fs';

import { busyboxArchive } from '@gantry/tests/busybox-image.ts';
import { Dockerd } from '@gantry/tests/dockerd.ts';
import { TestEngine } from '@gantry/tests/test-engine.ts';

import { compare, tableOf, type Budget, type Row } from './measure.ts';
import { runtimeFloor } from './runtime-floor.ts';
import { Subject } from './subject.ts';

const THIRD = 1 / 3;

const budgets: Budget<Subject>[] = [
  { name: 'run `true`, bridge', unit: 'ms', atMost: 0.2, work: async (s) => await s.runTrue('bridge') },
  { name: 'run `true`, host network', unit: 'ms', atMost: THIRD, work: async (s) => await s.runTrue('host') },
  { name: 'start with a published port', unit: 'ms', atMost: 0.25, work: async (s) => await s.startPublished() },
  { name: 'start 20 in parallel', unit: 'ms', atMost: 0.25, rounds: 5, work: async (s) => await s.startParallel(20) },
  { name: 'stop of one that obeys', unit: 'ms', atMost: 0.5, work: async (s) => await s.stopObedient() },
  {
    name: 'exec `true`, create to inspect',
    unit: 'ms',
    atMost: 0.5,
    rounds: 15,
    work: async (s) => await s.execTrue(),
  },
  { name: 'list 200 containers', unit: 'ms', atMost: 2 / 3, rounds: 25, work: async (s) => await s.list() },
  // So many that they show a daemon that has run for a while: Node has not compiled what the first hundred need.
  { name: 'inspect', unit: 'ms', atMost: 1, rounds: 501, work: async (s) => await s.inspect() },
  { name: 'write 200,000 log lines', unit: 'ms', atMost: 0.75, rounds: 5, work: async (s) => await s.writeLog() },
  { name: 'read them back', unit: 'ms', atMost: 0.5, rounds: 5, work: async (s) => await s.readLog('all') },
  { name: 'read the last 100', unit: 'ms', atMost: 1, rounds: 25, work: async (s) => await s.readLog('100') },
  ...(['zeros', 'a program', 'text in UTF-8'] as const).map((output): Budget<Subject> => ({
    name: `log 100 MB of ${output}`,
    unit: 'ms',
    atMost: 0.75,
    rounds: 5,
    work: async (s) => await s.log(output),
  })),
  { name: 'attach, 100 MB', unit: 'ms', atMost: 2 / 3, rounds: 5, work: async (s) => await s.attach('zeros') },
  {
    name: 'attach, 100 MB in small writes',
    unit: 'ms',
    atMost: 0.5,
    rounds: 9,
    work: async (s) => await s.attach('zeros in small writes'),
  },
  { name: 'load of one layer, 30 MB', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.load('large') },
  { name: 'save of it', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.save('large') },
  { name: 'load of 300 files of 100 KB', unit: 'ms', atMost: 0.5, work: async (s) => await s.load('medium') },
  { name: 'save of these', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.save('medium') },
  // What the kernel takes for a new file decides here. On ext4 without a journal that grows with every file that was
  // deleted nearby in the last minutes, whoever did it: TMPDIR on another file system shows the engines themselves.
  { name: 'load of 5,000 files of 2 KB', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.load('small') },
  { name: 'save of them', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.save('small') },
];

export async function engineBudgets(only?: string): Promise<Row[]> {
  await using engine = await TestEngine.start({ image: false });
  await using dockerd = await Dockerd.start();
  const rows: Row[] = [idleMemory(engine.pid, dockerd.pid)];
  await engine.loadBusybox();
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  const ours = new Subject(engine);
  const theirs = new Subject(dockerd.api);
  await Promise.all([ours.prepare(), theirs.prepare()]);
  for (const budget of budgets) {
    if (only !== undefined && !budget.name.includes(only)) continue;
    rows.push(await compare(budget, ours, theirs));
    console.error(tableOf(rows.slice(-1)).split('\n').at(-1));
  }
  rows.push(await monitorMemory(ours, theirs));
  await ours.clear();
  await theirs.clear();
  return rows;
}

export async function main(only?: string): Promise<void> {
  const rows = await engineBudgets(only);
  console.log(tableOf(rows));
  const floor = await runtimeFloor();
  console.log(`\nfloor: bare \`runc run\` + \`runc delete\` of the same: ${floor.toFixed(1)} ms`);
  const run = rows.find(({ name }) => name === 'run `true`, bridge');
  if (run !== undefined) console.log(`ours is ${(run.ours / floor).toFixed(2)} × the floor (budget: 2)`);
}

/** RSS without any container: dockerd with its containerd. */
function idleMemory(ourPid: number, dockerdPid: number): Row {
  const ours = residentMb(ourPid);
  const theirs = residentMb(dockerdPid) + childrenOf(dockerdPid).reduce((sum, pid) => sum + residentMb(pid), 0);
  return { name: 'daemon, idle, RSS', unit: 'MB', ours, theirs, ratio: ours / 100, atMost: 1 };
}

/** PSS of the process that watches one running container. */
async function monitorMemory(ours: Subject, theirs: Subject): Promise<Row> {
  await using _mine = await ours.sleeping();
  await using _other = await theirs.sleeping();
  const [mine, other] = [pssMb(/gantry-shim/), pssMb(/containerd-shim/)];
  return {
    name: 'monitor of a container, PSS',
    unit: 'MB',
    ours: mine,
    theirs: other,
    ratio: mine / other,
    atMost: 0.1,
  };
}

function residentMb(pid: number): number {
  return kilobytes(`/proc/${pid}/status`, /^VmRSS:\s+(\d+)/m) / 1024;
}

function pssMb(program: RegExp): number {
  const figures = globSync('/proc/[0-9]*')
    .filter((path) => program.test(commandOf(path)))
    .map((path) => kilobytes(`${path}/smaps_rollup`, /^Pss:\s+(\d+)/m) / 1024);
  if (figures.length === 0) throw new Error(`no process matches ${program}`);
  return figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
}

function kilobytes(path: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(path, 'utf8'))?.[1]);
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

function commandOf(path: string): string {
  try {
    return readFileSync(`${path}/cmdline`, 'utf8');
  } catch {
    return ''; // it ended between the listing and the look
  }
}
