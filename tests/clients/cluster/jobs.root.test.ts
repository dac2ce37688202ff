import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, type Said, type Side } from '../both-engines.ts';
import { JOB_LINES } from './job-lines.ts';
import { run, wait } from './lines.ts';

type Task = { JobIteration?: object; Slot?: number; DesiredState: string; Status: { State: string } };
type Body = Record<string, unknown>;

/** Bodies that only other clients send. */
const MODES: readonly Body[] = [
  { Mode: { ReplicatedJob: {} } },
  { Mode: { ReplicatedJob: { MaxConcurrent: 3 } } },
  { Mode: { ReplicatedJob: { TotalCompletions: 3 } } },
  { Mode: { ReplicatedJob: { MaxConcurrent: 0, TotalCompletions: 0 } } },
  { Mode: { ReplicatedJob: null, GlobalJob: {} } },
  { Mode: { ReplicatedJob: {}, GlobalJob: {} } },
  { Mode: { ReplicatedJob: {}, Replicated: {} } },
  { Mode: { GlobalJob: {}, Global: {} } },
  { Mode: { ReplicatedJob: {} }, UpdateConfig: {} },
  { Mode: { GlobalJob: {} }, UpdateConfig: { Parallelism: 1 } },
  { Mode: { ReplicatedJob: {} }, RollbackConfig: {} },
  { Mode: { ReplicatedJob: {} }, EndpointSpec: { Mode: 'dnsrr' } },
];

suite('jobs, beside dockerd', () => {
  let engines: BothEngines;
  let lines: { ours: Said[]; theirs: Said[] };
  let modes: { ours: unknown[]; theirs: unknown[] };
  before(async () => {
    engines = await BothEngines.start('1.41');
    lines = await engines.both(async (side) => {
      const said: Said[] = [];
      for (const line of JOB_LINES)
        said.push(line.startsWith('wait ') ? await wait(side, line) : await run(side, line));
      return said;
    });
    modes = await engines.both(async (side) => {
      const all: unknown[] = [];
      for (const [at, body] of MODES.entries()) all.push(await create(side, `mode${at}`, body));
      return all;
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [at, line] of JOB_LINES.entries()) {
    test(`${at}: ${line}`, () => assert.deepEqual(inOrder(lines.ours[at]!), inOrder(lines.theirs[at]!)));
  }
  for (const [at, body] of MODES.entries()) {
    test(JSON.stringify(body), () => assert.deepEqual(modes.ours[at], modes.theirs[at]));
  }

  test('tasks have the iteration of their job', async () => {
    const seen = await engines.both(async (side) => {
      await run(side, 'service create --name it --mode replicated-job --replicas 2 --no-resolve-image busybox true');
      await run(side, 'service update --detach --force it');
      await wait(side, 'wait it complete 4');
      const { body } = await side.api.get<Task[]>('/tasks?filters={"service":["it"]}');
      const shown = body.map(({ JobIteration, Slot, DesiredState }) => ({ JobIteration, Slot, DesiredState }));
      return shown.map((task) => JSON.stringify(task)).toSorted();
    });

    assert.deepEqual(seen.ours, seen.theirs);
  });
});

/** Tasks are listed by their ids. */
function inOrder({ stdout, ...said }: Said): Said {
  return { ...said, stdout: stdout.split('\n').toSorted().join('\n') };
}

/** The status of the creation, and the service without its times. */
async function create({ api }: Side, name: string, body: Body): Promise<unknown> {
  const TaskTemplate = { ContainerSpec: { Image: 'busybox', Command: ['true'] } };
  const { status, body: answer } = await api.post<Body>('/services/create', { Name: name, TaskTemplate, ...body });
  if (status !== 201) return { status, answer };
  const { body: shown } = await api.get<{ Spec: Body; JobStatus: Body }>(`/services/${name}`);
  return { status, spec: shown.Spec, iteration: shown.JobStatus['JobIteration'] };
}
