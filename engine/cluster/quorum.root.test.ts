import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('three managers', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.cluster(3, 0);
    [one, two, three] = all.hosts;
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('the SIGKILL of the daemon that leads, beside a living etcd: another one leads, and knows all that was written', async () => {
    const leader = await all.leader([one!]);
    const [another] = all.hosts.filter((host) => host !== leader);
    for (let count = 1; count <= 3; count += 1)
      await leader.updateNode(leader.name, { Labels: { count: String(count) } });

    await leader.engine.kill();

    await eventually('another leader', async () => ((await all.leader([another!])) === leader ? undefined : true));
    assert.deepEqual((await another!.node(leader.name)).Spec.Labels, { count: '3' });
    await another!.updateNode(another!.name, { Labels: { by: 'another' } });
    await leader.engine.startAgain();
    await another!.node(leader.name, ({ Status }) => Status.State === 'ready');
    assert.deepEqual((await leader.node(another!.name)).Spec.Labels, { by: 'another' });
  });

  test('the host of the leader is lost and comes back: it follows, and nothing that it had stored is lost', async () => {
    const leader = await all.leader([one!]);
    const [another] = all.hosts.filter((host) => host !== leader);
    await leader.updateNode(leader.name, { Labels: { last: 'word' } });

    await all.plug(leader, false);

    await eventually('another leader', async () => ((await all.leader([another!])) === leader ? undefined : true));
    await another!.updateNode(another!.name, { Labels: { by: 'the majority' } });
    const refused = await leader.engine.post<{ message: string }>(
      `/nodes/${(await leader.nodes())[0]!.ID}/update?version=1`,
      {
        Role: 'manager',
        Availability: 'active',
      },
    );
    assert.equal(refused.status, 500);
    assert.match(refused.body.message, /^The swarm does not have a leader/);

    await all.plug(leader, true);

    await leader.node(another!.name, ({ Spec }) => Spec.Labels.by === 'the majority');
    assert.deepEqual((await leader.node(leader.name)).Spec.Labels, { last: 'word' });
    await leader.updateNode(leader.name, { Labels: { back: 'again' } });
  });

  test('a demotion that would cost the quorum, since another manager is lost, is refused and changes nothing', async () => {
    const leader = await all.leader([one!]);
    const [lost, another] = all.hosts.filter((host) => host !== leader) as [ClusterHost, ClusterHost];
    await all.plug(lost, false);
    await leader.node(lost.name, ({ Status }) => Status.State === 'down');
    const { ID, Version, Spec } = await leader.node(another.name);

    const refused = await leader.engine.post<{ message: string }>(`/nodes/${ID}/update?version=${Version.Index}`, {
      ...Spec,
      Role: 'worker',
    });

    assert.equal(refused.status, 500);
    assert.match(refused.body.message, /can't remove member from the raft: this would result in a loss of quorum$/);
    assert.equal((await leader.node(another.name)).Version.Index, Version.Index);
    assert.equal((await another.info()).ControlAvailable, true);
    await all.plug(lost, true);
    await leader.node(lost.name, ({ Status }) => Status.State === 'ready');
  });

  test('without a quorum reads go on and writes say why they do not; ForceNewCluster makes the rest a cluster', async () => {
    const { ID } = await one!.swarm();
    const { ID: node, Version } = await one!.node('host1');
    await all.plug(two!, false);
    await all.plug(three!, false);

    const answer = await eventually('a refused write', async () => {
      const body = { Role: 'manager', Availability: 'active', Labels: { x: 'y' } };
      const told = await one!.engine.post<{ message: string }>(`/nodes/${node}/update?version=${Version.Index}`, body);
      return told.status === 500 && told.body.message.startsWith('The swarm') ? told : undefined;
    });
    assert.match(answer.body.message, /too few managers are online/);
    assert.equal((await one!.nodes()).length, 3);
    assert.equal((await one!.swarm()).ID, ID);

    const forced = await one!.engine.post('/swarm/init', { ListenAddr: one!.ip, ForceNewCluster: true });

    assert.equal(forced.status, 200, forced.raw.toString());
    assert.equal((await one!.swarm()).ID, ID);
    await one!.updateNode('host1', { Labels: { alone: 'now' } });
    const roles = (await one!.nodes()).map(({ Description, Spec }) => `${Description.Hostname} ${Spec.Role}`);
    assert.deepEqual(roles.toSorted(), ['host1 manager', 'host2 worker', 'host3 worker']);

    // One after the other: both together have the quorum of the old cluster, and would continue it.
    for (const host of [two!, three!]) {
      const etcd = await host.etcdPid();
      await all.plug(host, true);
      await one!.node(host.name, ({ Status }) => Status.State === 'ready');
      await eventually(`${host.name} is a worker`, async () =>
        (await host.info()).ControlAvailable ? undefined : true,
      );
      await eventually('its etcd has ended', async () => (existsSync(`/proc/${etcd}`) ? undefined : true));
    }
  });
});
