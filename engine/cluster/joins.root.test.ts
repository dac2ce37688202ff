import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

suite('many join', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, ...others]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(5);
    [one, ...others] = all.hosts;
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 1e9 } } });
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('four at once, two of them as managers, while a token changes that they do not use', async () => {
    const { JoinTokens, Version } = await one!.swarm();
    const roles = ['Manager', 'Worker', 'Manager', 'Worker'] as const;

    await Promise.all(
      others.slice(0, 3).map(async (host, index) => await host.join(one!, roles[index]!, JoinTokens[roles[index]!])),
    );
    const rotated = await one!.engine.post(`/swarm/update?version=${Version.Index}&rotateManagerToken=1`, {
      Dispatcher: { HeartbeatPeriod: 1e9 },
    });
    await others[3]!.join(one!, 'Worker', JoinTokens.Worker);

    assert.equal(rotated.status, 200);
    for (const [index, { name }] of others.entries()) {
      await one!.node(name, ({ Status, ManagerStatus }) => {
        return Status.State === 'ready' && (ManagerStatus !== undefined) === (roles[index] === 'Manager');
      });
    }
    for (const host of [others[0]!, others[2]!]) {
      await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === 5 ? true : undefined));
    }
  });

  test('a manager whose daemon is killed amid its promotion is one in the end, and the next is not kept waiting for it', async () => {
    const [, dying, , next] = others;
    await one!.updateNode(dying!.name, { Role: 'manager' });
    await eventually(
      'the promotion has begun',
      async () =>
        (await dying!.info()).LocalNodeState === 'pending' || (await dying!.info()).ControlAvailable || undefined,
    );

    await dying!.engine.kill();
    await dying!.engine.startAgain();
    await one!.updateNode(next!.name, { Role: 'manager' });

    for (const host of [dying!, next!]) {
      await one!.node(
        host.name,
        ({ Status, ManagerStatus }) => Status.State === 'ready' && ManagerStatus?.Reachability === 'reachable',
      );
      await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === 5 ? true : undefined));
    }
    await next!.updateNode(dying!.name, { Labels: { all: 'there' } });
  });
});
