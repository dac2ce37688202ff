/** The engine's budgets, each as a ratio to dockerd 20.10 in the same run through the same raw client. */
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { buildBudgets } from './builds/builds.ts';
import { FOLLOWED, followersCpu } from './cpu.ts';
import { filesBudgets } from './files.ts';
import { Fresh, freshBudgets } from './fresh.ts';
import { HEALTH_CHECKS, healthCheckCpu } from './health.ts';
import { manyBudgets } from './many.ts';
import { compare, tableOf, type Budget, type Row } from './measure.ts';
import { AFTER_WORK, idleMemory, memoryAfterWork, monitorMemory } from './memory.ts';
import { runtimeFloor } from './runtime-floor.ts';
import { WATCHERS, watchersCpu } from './stats-watchers.ts';
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
  // The machine's CPU time has steps of 10 ms, so both engines leave time between the two readings of a sample.
  { name: 'stats, one sample', unit: 'ms', atMost: THIRD, rounds: 5, work: async (s) => await s.statsOnce() },
  { name: 'update of limits', unit: 'ms', atMost: THIRD, rounds: 25, work: async (s) => await s.update() },
  { name: 'list 200 containers', unit: 'ms', atMost: 2 / 3, rounds: 25, work: async (s) => await s.list() },
  // Enough to measure a warm daemon: Node compiles the code during the first hundred.
  { name: 'inspect', unit: 'ms', atMost: 1, rounds: 501, work: async (s) => await s.inspect() },
  { name: 'write 200,000 log lines', unit: 'ms', atMost: 0.75, rounds: 5, work: async (s) => await s.writeLog() },
  { name: 'read them back', unit: 'ms', atMost: 0.5, rounds: 5, work: async (s) => await s.readLog('all') },
  { name: 'read the last 100', unit: 'ms', atMost: 0.9, rounds: 25, work: async (s) => await s.readLog('100') },
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
  // The kernel's time to create a file dominates here. On ext4 without a journal it grows with every file deleted
  // nearby in the last minutes, by any program: set TMPDIR to another file system to measure the engines.
  { name: 'load of 5,000 files of 2 KB', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.load('small') },
  { name: 'save of them', unit: 'ms', atMost: 2 / 3, work: async (s) => await s.save('small') },
];

export async function engineBudgets(only?: string): Promise<Row[]> {
  await using engine = await TestEngine.start({ image: false });
  await using dockerd = await Dockerd.start();
  const wanted = (name: string): boolean => only === undefined || name.includes(only);
  const rows: Row[] = [];
  const add = (row: Row): void => {
    rows.push(row);
    console.error(tableOf([row]).split('\n').at(-1));
  };
  add(idleMemory(engine.pid, dockerd.pid));
  for (const row of await freshBudgets(
    freshOf(engine),
    new Fresh(dockerd.api, async () => await dockerd.restart()),
    wanted,
  ))
    add(row);
  await engine.loadBusybox();
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  for (const row of await filesBudgets(engine, dockerd.api, wanted)) add(row);
  for (const row of await buildBudgets(engine, dockerd.api, wanted)) add(row);
  for (const row of await manyBudgets(engine, dockerd.api, wanted)) add(row);
  const ours = new Subject(engine);
  const theirs = new Subject(dockerd.api);
  await Promise.all([ours.prepare(), theirs.prepare()]);
  for (const budget of budgets) if (wanted(budget.name)) add(await compare(budget, ours, theirs));
  if (wanted(WATCHERS)) {
    add(await watchersCpu({ subject: ours, pid: engine.pid }, { subject: theirs, pid: dockerd.pid }));
  }
  add(await monitorMemory(ours, theirs));
  if (wanted(AFTER_WORK)) {
    add(await memoryAfterWork({ subject: ours, pid: engine.pid }, { subject: theirs, pid: dockerd.pid }));
  }
  const [mine, other] = [
    { api: engine, pid: engine.pid },
    { api: dockerd.api, pid: dockerd.pid },
  ];
  if (wanted(HEALTH_CHECKS)) for (const row of await healthCheckCpu(mine, other)) add(row);
  if (wanted(FOLLOWED)) add(await followersCpu(mine, other));
  await ours.clear();
  await theirs.clear();
  return rows;
}

function freshOf(engine: TestEngine): Fresh {
  return new Fresh(engine, async () => {
    await engine.kill('SIGTERM');
    await engine.startAgain();
  });
}

export async function main(only?: string): Promise<void> {
  const rows = await engineBudgets(only);
  console.log(tableOf(rows));
  const floor = await runtimeFloor();
  console.log(`\nfloor: bare \`runc run\` + \`runc delete\` of the same: ${floor.toFixed(1)} ms`);
  const run = rows.find(({ name }) => name === 'run `true`, bridge');
  if (run !== undefined) console.log(`ours is ${(run.ours / floor).toFixed(2)} × the floor (budget: 2)`);
}
