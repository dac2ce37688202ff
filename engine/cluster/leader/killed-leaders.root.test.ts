import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';

const KILLS = 3;
/** So that there are not too many containers. */
const PAUSE_MS = 500;

suite('leaders are killed while services are made', { concurrency: false }, () => {
  let all: ClusterHosts;
  before(async () => {
    all = await ClusterHosts.start(3, { image: true });
    const [one, ...others] = all.hosts as [ClusterHost, ...ClusterHost[]];
    await one.init();
    await Promise.all(others.map(async (host) => await host.join(one, 'Manager')));
    await eventually('three managers', async () =>
      (await one.nodes()).every(({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable') ? true : undefined,
    );
  });
  after(async () => await all[Symbol.asyncDispose]());

  const leader = async (): Promise<ClusterHost> =>
    await eventually('a leader', async () => {
      const looks = all.hosts.map(async (host) =>
        (await host.nodes()).find(({ ManagerStatus }) => ManagerStatus?.Leader),
      );
      const name = (await Promise.any(looks))?.Description.Hostname;
      return all.hosts.find((host) => host.name === name);
    });
  /** Slots with more than one task that is to run. */
  const doubled = (tasks: readonly TaskWire[]): string[] => {
    const wanted = tasks.filter(({ DesiredState }) => DesiredState === 'running');
    const places = Map.groupBy(wanted, ({ ServiceID, Slot }) => `${ServiceID}/${Slot}`);
    return [...places].filter(([, group]) => group.length > 1).map(([place]) => place);
  };

  test('what was acknowledged is there and runs, and no slot ever has two tasks that are to run', async () => {
    const acknowledged = new Set<string>();
    const problems: string[] = [];
    const over = new AbortController();
    // A client that asks any manager, and goes on to the next where one does not answer.
    const client = async (name: string): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at += 1) {
        const host = all.hosts[at % all.hosts.length]!;
        const service = `${name}-${at}`;
        const body = {
          Name: service,
          TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: ['sleep', '100000'], StopGracePeriod: 0 } },
          Mode: { Replicated: { Replicas: 1 } },
        };
        const answer = await host.engine.post('/services/create', body).catch(() => undefined);
        if (answer?.status === 201) acknowledged.add(service);
        const tasks = await host.engine.get<TaskWire[]>('/tasks').catch(() => undefined);
        if (tasks?.status === 200) problems.push(...doubled(tasks.body));
        await setTimeout(PAUSE_MS);
      }
    };

    const clients = client('a');
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const before = acknowledged.size;
      const killed = await leader();
      await killed.engine.kill();
      await eventually('writes go on', async () => (acknowledged.size > before ? true : undefined));
      await killed.engine.startAgain();
    }
    over.abort();
    await clients;

    assert.deepEqual(problems, []);
    const services = new Services(await leader());
    for (const name of acknowledged) await services.running(name, 1);
    await Promise.all([...acknowledged].map(async (name) => await services.remove(name)));
  });
});
