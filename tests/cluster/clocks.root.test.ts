import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const SECOND = 1e9;
/** An update that waited for a clock would take fifty minutes. */
const MAX_MS = 120_000;

suite('machines with clocks that are wrong by fifty minutes', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [right, ahead, behind, farBehind]: ClusterHost[] = [];
  let services: Services;
  before(async () => {
    all = await ClusterHosts.start(4, { image: true, clocks: { host2: '+50m', host3: '-50m', host4: '-3h' } });
    [right, ahead, behind, farBehind] = all.hosts;
    await right!.init();
    services = new Services(right!);
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('they join as managers, and see each other', async () => {
    await ahead!.join(right!, 'Manager');
    await behind!.join(right!, 'Manager');

    for (const host of [right!, ahead!, behind!]) {
      for (const name of ['host1', 'host2', 'host3']) await host.node(name, ({ Status }) => Status.State === 'ready');
      await host.updateNode('host1', { Labels: { by: host.name } });
    }
    const { body } = await ahead!.engine.get<{ SystemTime: string }>('/info');
    const minutes = Temporal.Now.instant().until(body.SystemTime).total('minutes');
    assert.ok(minutes > 49 && minutes < 51, `${minutes}`);
  });

  test('one that is hours behind is told why it cannot', async () => {
    await assert.rejects(
      farBehind!.join(right!, 'Worker'),
      /join answered 500: .*is not yet valid: compare the clocks/,
    );
    assert.equal((await farBehind!.info()).LocalNodeState, 'inactive');
  });

  for (const change of ['under the one whose clock is right', 'after its end, under the next one']) {
    test(`an update with a delay, and the restart of a task that failed, ${change}`, async () => {
      const name = change.startsWith('under') ? 'first' : 'second';
      const more = { Mode: { Replicated: { Replicas: 3 } }, UpdateConfig: { Parallelism: 1, Delay: 2 * SECOND } };
      const RestartPolicy = { Condition: 'any', Delay: SECOND };
      await services.create(name, {}, { ...more, TaskTemplate: { RestartPolicy } });
      await services.running(name, 3);
      for (const { ID, Description } of await right!.nodes()) hostnames.set(ID, Description.Hostname!);
      const started = performance.now();

      await services.update(name, (spec) => {
        const { ContainerSpec, ...template } = spec.TaskTemplate as { ContainerSpec: object };
        return { ...spec, TaskTemplate: { ...template, ContainerSpec: { ...ContainerSpec, Env: ['a=b'] } } };
      });
      const manager = name === 'first' ? right! : await endOfLeader();
      const now = new Services(manager);
      await eventually('the update', async () => {
        const { body } = await manager.engine.get<{ UpdateStatus?: { State: string } }>(`/services/${name}`);
        if (body.UpdateStatus?.State === 'completed') return true;
        throw new Error(`it is ${JSON.stringify(body.UpdateStatus)}`);
      });
      assert.ok(performance.now() - started < MAX_MS);

      const [task] = await now.running(name, 3);
      const host = all.hosts.find(({ name: own }) => own === hostnames.get(task!.NodeID!))!;
      const killed = performance.now();
      assert.equal(
        (await host.engine.post(`/containers/${task!.Status.ContainerStatus!.ContainerID}/kill`)).status,
        204,
      );
      await now.task(name, ({ ID, Status }) => ID === task!.ID && Status.State === 'failed');
      await now.running(name, 3);
      assert.ok(performance.now() - killed < MAX_MS);
      await now.remove(name);
      await right!.engine.get('/_ping').catch(async () => await right!.engine.startAgain());
    });
  }

  const hostnames = new Map<string, string>();

  /** Kills the daemon that leads; a manager that goes on. */
  async function endOfLeader(): Promise<ClusterHost> {
    await right!.engine.kill();
    await ahead!.updateNode('host2', { Labels: { goes: 'on' } });
    return ahead!;
  }
});
