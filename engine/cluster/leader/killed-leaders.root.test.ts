import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { RetryingClient } from '@gantry/testing/cluster/retrying-client.ts';
import { Services } from '@gantry/testing/cluster/services.ts';

/** A hundred of them: `GANTRY_KILLS=100 node engine/cluster/leader/killed-leaders.root.test.ts`. */
const KILLS = Number(process.env.GANTRY_KILLS ?? 3);
/** Of so many kills one is that of the whole machine, with its etcd and its containers. */
const OF_MACHINES = 3;

suite('leaders are killed while services are made, changed and removed', { concurrency: false }, () => {
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

  test('what was acknowledged is there and runs, each write is done once, and no slot has two tasks that are to run', async () => {
    const clients = ['a', 'b'].map((name) => new RetryingClient(all.hosts, name));
    const over = new AbortController();
    const running = clients.map(async (client) => await client.run(over.signal));
    const gaps: number[] = [];

    for (let kill = 1; kill <= KILLS; kill += 1) {
      const killed = await leader();
      const before = clients.map(({ acknowledged }) => acknowledged);
      const at = performance.now();
      const isMachine = kill % OF_MACHINES === 0;
      await (isMachine ? killed.powerOff() : killed.engine.kill());
      // The second one after the kill: the first may have been stored before it.
      await eventually('writes go on', async () =>
        clients.every(({ acknowledged }, index) => acknowledged > before[index]! + 1) ? true : undefined,
      );
      gaps.push(performance.now() - at);
      await (isMachine ? killed.powerOn() : killed.engine.startAgain());
    }
    over.abort();
    await Promise.all(running);

    const manager = await leader();
    for (const client of clients) await client.compare(manager);
    assert.deepEqual(
      clients.flatMap(({ problems }) => problems),
      [],
    );
    const services = new Services(manager);
    for (const name of clients.flatMap((client) => [...client.services])) {
      await services.running(name, 1);
      await services.remove(name);
    }
    if (KILLS > 3) console.log(summary(clients, gaps));
  });
});

function summary(clients: readonly RetryingClient[], gaps: readonly number[]): string {
  const sum = (pick: (client: RetryingClient) => number): number => clients.reduce((all, one) => all + pick(one), 0);
  const sorted = gaps.toSorted((a, b) => a - b).map((gap) => (gap / 1000).toFixed(1));
  const [middle, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  const writes = `${sum(({ acknowledged }) => acknowledged)} writes acknowledged, ${sum(({ repeated }) => repeated)} attempts repeated`;
  return `${gaps.length} kills, ${writes}; all clients write again after ${middle} s (median), ${most} s at most`;
}
