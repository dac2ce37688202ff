import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, type Side } from '../both-engines.ts';

type Task = {
  DesiredState: string;
  Spec: { ContainerSpec: { Env?: string[] } };
  Status: { State: string; ContainerStatus?: { ContainerID: string } };
};
type Service = { ID: string; Version: { Index: number }; UpdateStatus?: { State: string } };

/** The state of an update, and how many tasks of each kind run and are to run. */
type Outcome = { state: string | undefined; old: number; new: number };

/**
 * Updates of three replicas one of whose new tasks fails. The test kills it when `killAt` new ones run; without that the new
 * ones name a missing program.
 */
type Row = Readonly<{ update: object; killAt?: number; outcome: Outcome }>;

const [SECOND, HOUR] = [1e9, 3600e9];
const ROWS: Readonly<Record<string, Row>> = {
  'a failure within the delay leaves the old tasks of other slots': {
    update: { Parallelism: 1, Delay: HOUR },
    killAt: 1,
    outcome: { state: 'paused', old: 2, new: 1 },
  },
  'without a delay the next slot follows a new task that runs, whatever becomes of it': {
    update: { Parallelism: 1 },
    killAt: 3,
    outcome: { state: 'paused', old: 0, new: 3 },
  },
  'a task that never runs leaves the old tasks of other slots': {
    update: { Parallelism: 1, Delay: HOUR }, // without one dockerd may have begun with the next slot
    outcome: { state: 'paused', old: 2, new: 0 },
  },
  'of two slots at once both are replaced': {
    update: { Parallelism: 2, Delay: HOUR },
    killAt: 2,
    outcome: { state: 'paused', old: 1, new: 2 },
  },
  'with parallelism 0 all are replaced': {
    update: { Parallelism: 0 }, // with a delay dockerd notices no failure before its end
    killAt: 3,
    outcome: { state: 'paused', old: 0, new: 3 },
  },
  'a failure that the ratio allows does not pause': {
    update: { Parallelism: 1, Delay: HOUR, MaxFailureRatio: 0.5 },
    killAt: 1,
    outcome: { state: 'updating', old: 2, new: 1 },
  },
  'continue replaces all, one after the other': {
    update: { Parallelism: 1, Delay: SECOND, FailureAction: 'continue' },
    outcome: { state: 'completed', old: 0, new: 0 },
  },
};

suite('updates with failing tasks, beside dockerd', () => {
  let engines: BothEngines;
  const outcomes = new Map<string, { ours: Outcome; theirs: Outcome }>();
  before(async () => {
    engines = await BothEngines.start();
    await engines.both(async ({ api }) => {
      const addresses = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
      assert.equal((await api.post('/swarm/init', addresses)).status, 200);
    });
    const rows = Object.entries(ROWS).map(async ([name, row], index) => {
      outcomes.set(name, await engines.both(async (side) => await outcomeOf(side, `web${index}`, row)));
    });
    await Promise.all(rows);
  });
  after(async () => {
    await engines.both(async ({ api }) => await api.post('/swarm/leave?force=1'));
    await engines[Symbol.asyncDispose]();
  });

  for (const [name, { outcome }] of Object.entries(ROWS)) {
    test(name, () => {
      const { ours, theirs } = outcomes.get(name)!;

      assert.deepEqual(theirs, outcome);
      assert.deepEqual(ours, outcome);
    });
  }
});

/** Creates a service, updates it, and lets a new task fail; the failed slot has been started again when this returns. */
async function outcomeOf(side: Side, name: string, { update, killAt, outcome }: Row): Promise<Outcome> {
  const { api } = side;
  const spec = (age: string, Command: string[]): object => ({
    Name: name,
    TaskTemplate: {
      ContainerSpec: { Image: 'busybox', Command, Env: [age], StopGracePeriod: 0 },
      RestartPolicy: { Condition: 'any', Delay: SECOND / 10 },
    },
    Mode: { Replicated: { Replicas: 3 } },
    UpdateConfig: { FailureAction: 'pause', Monitor: killAt === undefined ? SECOND : HOUR, ...update },
  });
  const program = killAt === undefined ? '/no/such/program' : 'sleep';
  assert.equal((await api.post('/services/create', spec('old', ['sleep', '1000']))).status, 201);
  await look(side, name, ({ old }) => old.length === 3);
  const { ID, Version } = (await api.get<Service>(`/services/${name}`)).body;
  const path = `/services/${ID}/update?version=${Version.Index}`;
  assert.equal((await api.post(path, spec('new', [program, '1000']))).status, 200);
  if (killAt !== undefined) {
    const [task] = (await look(side, name, (seen) => seen.new.length === killAt)).new;
    assert.equal((await api.post(`/containers/${task!.Status.ContainerStatus!.ContainerID}/kill`)).status, 204);
  }
  // It fails, and another one takes its place: what else may follow has done so by then.
  const failures = killAt === undefined ? 2 : 1;
  const end = await look(side, name, (seen) => {
    return seen.failed >= failures && seen.new.length === (killAt ?? 0) && seen.state === outcome.state;
  });
  return { state: end.state, old: end.old.length, new: end.new.length };
}

type Seen = { state: string | undefined; old: Task[]; new: Task[]; failed: number };

/** The tasks of a service, once they are as expected. */
async function look({ api, name: engine }: Side, service: string, isExpected: (seen: Seen) => boolean): Promise<Seen> {
  return await eventually(`${engine}: ${service}`, async () => {
    const filters = encodeURIComponent(JSON.stringify({ service: [service] }));
    const tasks = (await api.get<Task[]>(`/tasks?filters=${filters}`)).body;
    const state = (await api.get<Service>(`/services/${service}`)).body.UpdateStatus?.State;
    const running = tasks.filter(
      ({ DesiredState, Status }) => DesiredState === 'running' && Status.State === 'running',
    );
    const of = (age: string): Task[] => running.filter(({ Spec }) => Spec.ContainerSpec.Env?.[0] === age);
    const failed = tasks.filter(({ Status }) => Status.State === 'failed' || Status.State === 'rejected').length;
    const seen = { state, old: of('old'), new: of('new'), failed };
    if (!isExpected(seen)) throw new Error(`${state}: ${tasks.map(({ Status }) => Status.State).join(' ')}`);
    return seen;
  });
}
