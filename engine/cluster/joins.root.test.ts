import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost, type EtcdMember } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('many join', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, ...others]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(6);
    [one, ...others] = all.hosts;
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 1e9 } } });
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('five at once, two of them as managers, while both tokens change: each is one node, by a token of its time', async () => {
    const old = await one!.swarm();
    const roles = ['Manager', 'Worker', 'Manager', 'Worker', 'Worker'] as const;
    const refused: string[] = [];
    const enter = async (host: ClusterHost, role: 'Manager' | 'Worker'): Promise<void> => {
      try {
        await host.join(one!, role, old.JoinTokens[role]);
      } catch (error) {
        refused.push(String(error));
        await host.join(one!, role); // by the new one
      }
    };

    const joins = others.map(async (host, index) => await enter(host, roles[index]!));
    const rotated = await one!.engine.post(
      `/swarm/update?version=${old.Version.Index}&rotateManagerToken=1&rotateWorkerToken=1`,
      { Dispatcher: { HeartbeatPeriod: 1e9 } },
    );
    await Promise.all(joins);

    assert.equal(rotated.status, 200);
    for (const reason of refused) assert.match(reason, /join answered 400: .*A valid join token is necessary/);
    for (const [index, { name }] of others.entries()) {
      await one!.node(name, ({ Status, ManagerStatus }) => {
        return Status.State === 'ready' && (ManagerStatus !== undefined) === (roles[index] === 'Manager');
      });
    }
    for (const host of [one!, others[0]!, others[2]!]) {
      await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === 6 ? true : undefined));
    }
  });

  test('a manager that is killed amid its promotion becomes one in the end, and the next is not kept waiting for it', async () => {
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
      await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === 6 ? true : undefined));
    }
    await next!.updateNode(dying!.name, { Labels: { all: 'there' } });
  });

  test('a machine is lost while it becomes a manager, and so does the daemon that leads: the next one becomes a manager all the same', async () => {
    const [next, , , , lost] = others;
    await one!.updateNode(next!.name, { Role: 'worker' });
    await one!.node(next!.name, ({ ManagerStatus, Status }) => ManagerStatus === undefined && Status.State === 'ready');
    // Its etcd hears nothing, so that it stays one that learns.
    await lost!.engine.onHost([
      'nft',
      'add table inet cut; add chain inet cut in { type filter hook input priority 0; }',
    ]);
    await lost!.engine.onHost([
      'nft',
      'add rule inet cut in tcp dport 2378 drop; add rule inet cut in tcp sport 2378 drop',
    ]);
    await one!.updateNode(lost!.name, { Role: 'manager' });
    await eventually('it is a learner', async () => ((await learners(one!)).length > 0 ? true : undefined));
    const learning = await one!.node(lost!.name, ({ ManagerStatus }) => ManagerStatus !== undefined);
    await lost!.powerOff();
    const leader = await all.leader([one!]);
    const another = [one!, others[2]!].find((host) => host !== leader)!;

    await leader.engine.kill();
    await another.updateNode(next!.name, { Role: 'manager' });

    await eventually(`${next!.name} manages`, async () => ((await next!.nodes()).length === 6 ? true : undefined));
    assert.deepEqual(await learners(another), []);
    assert.deepEqual([learning.Status.State, learning.ManagerStatus!.Reachability], ['ready', 'unreachable']);
    await leader.engine.startAgain();
    await lost!.engine.onHost(['nft', 'delete table inet cut']);
    await lost!.powerOn();
    await eventually(`${lost!.name} manages`, async () => ((await lost!.nodes()).length === 6 ? true : undefined));
  });
});

/** The members of etcd that do not vote yet. */
async function learners(host: ClusterHost): Promise<EtcdMember[]> {
  return (await host.etcdMembers()).filter(({ isLearner }) => isLearner === true);
}
