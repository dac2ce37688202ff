import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('managers come and are lost', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  const stopped = new Set<number>();
  before(async () => {
    all = await ClusterHosts.start(3);
    [one, two, three] = all.hosts;
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 1e9 } } });
  });
  afterEach(() => {
    for (const pid of stopped) process.kill(pid, 'SIGCONT');
    stopped.clear();
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function manages(host: ClusterHost, nodes: number): Promise<void> {
    await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === nodes ? true : undefined));
    await one!.node(host.name, ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    await host.updateNode(host.name, { Labels: { written: 'here' } });
  }

  test('the machine of the second one is lost when it has got its vote, before its daemon knows: both go on when it is back', async () => {
    await two!.join(one!, 'Worker');
    await one!.updateNode('host2', { Role: 'manager' });
    await eventually('its etcd learns', async () => await two!.etcdPid());
    process.kill(two!.engine.pid, 'SIGSTOP');
    stopped.add(two!.engine.pid);

    await promoteBehindItsBack(one!);
    stopped.clear();
    await two!.powerOff();
    await two!.powerOn();

    await manages(two!, 2);
  });

  test('the leader removes a member, and ends before it has noted that: the member begins again under the next one', async () => {
    await three!.join(one!, 'Manager');
    await manages(three!, 3);
    const leader = await all.leader([one!]);
    const removed = all.hosts.find((host) => host !== leader)!;
    const { ID } = (await removed.nodes()).find(({ Description }) => Description.Hostname === removed.name)!;
    const before = (await leader.etcdMembers()).find(({ name }) => name === ID)!;

    await eventually('it removes a member again, as it does not in the first seconds', async () => {
      return await leader.etcdMembers('remove', { ID: before.ID });
    });
    await leader.engine.kill();
    await leader.engine.startAgain();

    await eventually('it is a member again', async () => {
      const now = (await leader.etcdMembers()).find(({ name }) => name === ID);
      return now !== undefined && now.ID !== before.ID && now.isLearner !== true ? true : undefined;
    });
    await manages(removed, 3);
  });

  test('a manager that is lost is demoted: it has no vote any more, is a worker should it come back, and can be removed', async () => {
    const leader = await all.leader();
    const lost = all.hosts.find((host) => host !== leader)!;
    await lost.powerOff();
    await leader.node(lost.name, ({ Status }) => Status.State === 'down');

    await leader.updateNode(lost.name, { Role: 'worker' });

    await leader.node(lost.name, ({ ManagerStatus }) => ManagerStatus === undefined);
    assert.equal((await leader.etcdMembers()).length, 2);
    await lost.powerOn();
    await leader.node(lost.name, ({ Status }) => Status.State === 'ready');
    await eventually('it is a worker', async () => ((await lost.info()).ControlAvailable ? undefined : true));
    await lost.powerOff();
    const { ID } = await leader.node(lost.name, ({ Status }) => Status.State === 'down');
    const removal = await leader.engine.delete(`/nodes/${ID}`);
    assert.equal(removal.status, 200, removal.raw.toString());
    assert.equal((await leader.nodes()).length, 2);
  });
});

/** Gives the learner its vote, unless the leader, who was asked just before, does. */
async function promoteBehindItsBack(leader: ClusterHost): Promise<void> {
  const learner = await eventually('a learner', async () =>
    (await leader.etcdMembers()).find(({ isLearner }) => isLearner),
  );
  await eventually('it has a vote', async () => {
    const members = await leader.etcdMembers();
    if (members.some(({ ID, isLearner }) => ID === learner.ID && isLearner !== true)) return true;
    await leader.etcdMembers('promote', { ID: learner.ID });
    return undefined;
  });
}
