import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts } from '@gantry/testing/cluster/hosts.ts';
import { finish, RetryingClient } from '@gantry/testing/cluster/retrying-client.ts';
import { eventually } from '@gantry/testing/eventually.ts';

/** A hundred of them: `GANTRY_KILLS=100 node engine/cluster/leader/killed-leaders.root.test.ts`. */
const KILLS = Number(process.env.GANTRY_KILLS ?? 3);
/** One of so many kills is that of the whole machine, with its etcd and its containers. */
const OF_MACHINES = 3;

suite('leaders are killed while services are made, changed and removed', { concurrency: false }, () => {
  let all: ClusterHosts;
  before(async () => {
    all = await ClusterHosts.cluster(3, 0, { image: true });
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('acknowledged changes are there and run, each write is done once, and no slot has two tasks that are to run', async () => {
    const clients = ['a', 'b'].map((name) => new RetryingClient(all.hosts, name));
    const over = new AbortController();
    const running = clients.map(async (client) => await client.run(over.signal));
    const gaps: number[] = [];

    for (let kill = 1; kill <= KILLS; kill += 1) {
      const killed = await all.leader();
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

    assert.deepEqual(await finish(clients, await all.leader()), []);
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
