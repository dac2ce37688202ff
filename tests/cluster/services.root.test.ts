import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Task = {
  ID: string;
  Slot?: number;
  NodeID?: string;
  DesiredState: string;
  Spec: { ContainerSpec: { Args: string[] } };
  Status: { State: string; Err?: string };
};
type Service = { ID: string; Version: { Index: number }; Spec: object; UpdateStatus?: { State: string } };

const QUICK = { Condition: 'any', Delay: 1e8 };
const template = (...Args: string[]) => ({
  ContainerSpec: { Image: 'busybox', Args, StopGracePeriod: 0 },
  RestartPolicy: QUICK,
});
const sleeping = template('sleep', '1000');
const replicas = (count: number) => ({ Replicated: { Replicas: count } });

suite('services on three hosts', { concurrency: false }, () => {
  let all: ClusterHosts;
  let one: ClusterHost;
  let ids: string[];
  before(async () => {
    all = await ClusterHosts.start(3, { image: true });
    [one] = all.hosts as [ClusterHost];
    await one.init();
    await Promise.all(all.hosts.slice(1).map(async (host) => await host.join(one, 'Worker')));
    ids = await Promise.all(
      all.hosts.map(async ({ name }) => (await one.node(name, ({ Status }) => Status.State === 'ready')).ID),
    );
  });
  after(async () => await all[Symbol.asyncDispose]());

  const create = async (body: object): Promise<string> => {
    const answer = await one.engine.post<{ ID: string }>('/services/create', body);
    assert.equal(answer.status, 201, answer.raw.toString());
    return answer.body.ID;
  };
  const service = async (ref: string): Promise<Service> => (await one.engine.get<Service>(`/services/${ref}`)).body;
  const update = async (ref: string, changes: object): Promise<void> => {
    await eventually(`the update of ${ref}`, async () => {
      const { Version, Spec } = await service(ref);
      const answer = await one.engine.post(`/services/${ref}/update?version=${Version.Index}`, { ...Spec, ...changes });
      return answer.status === 200 ? true : undefined;
    });
  };
  const tasks = async (ref: string): Promise<Task[]> => {
    const filters = encodeURIComponent(JSON.stringify({ service: [ref] }));
    return (await one.engine.get<Task[]>(`/tasks?filters=${filters}`)).body;
  };
  /** The tasks that are to run, once all of them do and are as expected. */
  const running = async (ref: string, isExpected: (tasks: Task[]) => boolean): Promise<Task[]> =>
    await eventually(`tasks of ${ref}`, async () => {
      const wanted = (await tasks(ref)).filter(({ DesiredState }) => DesiredState === 'running');
      if (!wanted.every(({ Status }) => Status.State === 'running')) return undefined;
      return isExpected(wanted) ? wanted : undefined;
    });
  const containers = async (name: string): Promise<number> => {
    const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.swarm.service.name=${name}`] }));
    const listed = await Promise.all(
      all.hosts.map(async ({ engine }) => (await engine.get<object[]>(`/containers/json?filters=${filters}`)).body),
    );
    return listed.flat().length;
  };
  const remove = async (ref: string): Promise<void> => {
    assert.equal((await one.engine.delete(`/services/${ref}`)).status, 200);
  };

  test('replicas are spread over the nodes, more and fewer of them, and leave nothing', async () => {
    await create({ Name: 'web', TaskTemplate: sleeping, Mode: replicas(3) });
    const first = await running('web', ({ length }) => length === 3);
    assert.deepEqual(new Set(first.map(({ NodeID }) => NodeID)), new Set(ids));
    assert.equal(await containers('web'), 3);

    await update('web', { Mode: replicas(6) });
    const more = await running('web', ({ length }) => length === 6);
    assert.deepEqual(new Set(more.map(({ Slot }) => Slot)), new Set([1, 2, 3, 4, 5, 6]));

    await update('web', { Mode: replicas(1) });
    await running('web', ({ length }) => length === 1);
    await remove('web');
    await eventually('no container', async () => ((await containers('web')) === 0 ? true : undefined));
  });

  test('a global service has a task on each node that fits; a drained node gives its tasks away', async () => {
    await create({ Name: 'each', TaskTemplate: sleeping, Mode: { Global: {} } });
    await create({ Name: 'moved', TaskTemplate: sleeping, Mode: replicas(3) });
    await running('each', ({ length }) => length === 3);
    await running('moved', ({ length }) => length === 3);

    await one.updateNode('host3', { Availability: 'drain' });
    const left = (of: Task[], count: number): boolean =>
      of.length === count && of.every(({ NodeID }) => NodeID !== ids[2]);
    await running('each', (of) => left(of, 2));
    await running('moved', (of) => left(of, 3));
    await one.updateNode('host3', { Availability: 'active' });
    await running('each', ({ length }) => length === 3);
    await remove('each');
    await remove('moved');
  });

  test('constraints choose nodes, and move tasks when a label changes', async () => {
    await one.updateNode('host2', { Labels: { disk: 'fast' } });
    const Placement = { Constraints: ['node.labels.disk == fast'] };
    await create({ Name: 'picky', TaskTemplate: { ...sleeping, Placement }, Mode: replicas(2) });
    await running('picky', (of) => of.length === 2 && of.every(({ NodeID }) => NodeID === ids[1]));

    await one.updateNode('host1', { Labels: { disk: 'fast' } });
    await one.updateNode('host2', { Labels: {} });
    await running('picky', (of) => of.length === 2 && of.every(({ NodeID }) => NodeID === ids[0]));
    await remove('picky');
  });

  test('an update replaces all tasks, one after the other', async () => {
    await create({ Name: 'rolled', TaskTemplate: sleeping, Mode: replicas(3) });
    await running('rolled', ({ length }) => length === 3);

    await update('rolled', {
      TaskTemplate: template('sleep', '2000'),
      UpdateConfig: { Parallelism: 1, FailureAction: 'pause' },
    });
    const isNew = ({ Spec }: Task): boolean => Spec.ContainerSpec.Args[1] === '2000';
    await running('rolled', (of) => of.length === 3 && of.every(isNew));
    await eventually('its end', async () =>
      (await service('rolled')).UpdateStatus?.State === 'completed' ? true : undefined,
    );
    await remove('rolled');
  });

  test('a broken update is paused after its first task, and can be taken back', async () => {
    await create({ Name: 'broken', TaskTemplate: sleeping, Mode: replicas(3) });
    await running('broken', ({ length }) => length === 3);

    await update('broken', { TaskTemplate: { ...template('/nowhere'), RestartPolicy: { Condition: 'none' } } });
    await eventually('a pause', async () =>
      (await service('broken')).UpdateStatus?.State === 'paused' ? true : undefined,
    );
    const kept = (await tasks('broken')).filter(({ Status }) => Status.State === 'running');
    assert.equal(kept.length, 2);
    const { Version, Spec } = await service('broken');
    const back = await one.engine.post(`/services/broken/update?version=${Version.Index}&rollback=previous`, Spec);
    assert.equal(back.status, 200, back.raw.toString());
    await running('broken', ({ length }) => length === 3);
    await remove('broken');
  });

  test('MaxAttempts ends the restarts of a task that fails', async () => {
    const RestartPolicy = { Condition: 'any', Delay: 1e7, MaxAttempts: 2 };
    await create({ Name: 'failing', TaskTemplate: { ...template('false'), RestartPolicy } });

    const ended = await eventually('three failures', async () => {
      const of = await tasks('failing');
      return of.length === 3 && of.every(({ Status }) => Status.State === 'failed') ? of : undefined;
    });
    for (const { Status, DesiredState } of ended) {
      assert.equal(DesiredState, 'shutdown');
      assert.match(Status.Err ?? '', /non-zero exit \(1\)/);
    }
    await remove('failing');
  });
});
