import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('a cluster of three', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(3);
    [one, two, three] = all.hosts;
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 1e9 } } });
  });
  after(async () => await all[Symbol.asyncDispose]());

  test('a worker and a manager join; every manager shows all nodes, a worker none', async () => {
    await two!.join(one!, 'Worker');
    await three!.join(one!, 'Manager');

    for (const host of [one!, three!]) {
      for (const { name, ip } of all.hosts)
        await host.node(name, ({ Status }) => Status.State === 'ready' && Status.Addr === ip);
    }
    const roles = (await three!.nodes()).map(({ Description, Spec }) => `${Description.Hostname} ${Spec.Role}`);
    assert.deepEqual(roles.toSorted(), ['host1 manager', 'host2 worker', 'host3 manager']);
    const answer = await two!.engine.get<{ message: string }>('/nodes');
    assert.equal(answer.status, 406);
    assert.match(answer.body.message, /^This node is not a swarm manager. Worker nodes can't be used/);
    assert.equal((await two!.engine.get('/swarm')).status, 406);
  });

  test('a manager that does not lead writes too, and shows its write at once', async () => {
    await three!.updateNode('host2', { Labels: { written: 'there' } });

    const seen = (await three!.nodes()).find(({ Description }) => Description.Hostname === 'host2');
    assert.deepEqual(seen?.Spec.Labels, { written: 'there' });
    assert.deepEqual((await one!.node('host2')).Spec.Labels, { written: 'there' });
  });

  test('a worker that is promoted manages, and one that is demoted does not, nor its etcd', async () => {
    await one!.updateNode('host2', { Role: 'manager' });
    await one!.node('host2', ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    await eventually('host2 manages', async () => ((await two!.info()).ControlAvailable ? true : undefined));
    assert.equal((await two!.nodes()).length, 3);
    const etcd = await two!.etcdPid();

    await one!.updateNode('host2', { Role: 'worker' });
    await eventually('host2 manages no more', async () => ((await two!.info()).ControlAvailable ? undefined : true));

    await one!.node('host2', ({ ManagerStatus, Status }) => ManagerStatus === undefined && Status.State === 'ready');
    await eventually('its etcd has ended', async () => isGone(etcd) || undefined);
    assert.equal((await two!.engine.get('/nodes')).status, 406);
  });

  test('tokens that were changed or are not of this cluster let nobody in', async () => {
    const leave = await two!.engine.post('/swarm/leave');
    assert.equal(leave.status, 200);
    await one!.node('host2', ({ Status }) => Status.State === 'down');
    const old = await one!.swarm();
    const rotated = await one!.engine.post(`/swarm/update?version=${old.Version.Index}&rotateWorkerToken=1`, {
      Name: 'default',
      Dispatcher: { HeartbeatPeriod: 1e9 },
    });
    assert.equal(rotated.status, 200);
    const join = async (JoinToken: string): Promise<[number, string]> => {
      const body = { ListenAddr: two!.ip, RemoteAddrs: [one!.ip], JoinToken };
      const answer = await two!.engine.post<{ message: string }>('/swarm/join', body);
      return [answer.status, answer.body.message];
    };
    const foreign = old.JoinTokens.Worker.replace(/^SWMTKN-1-.{5}/, 'SWMTKN-1-00000');

    const [oldStatus, oldMessage] = await join(old.JoinTokens.Worker);
    const [foreignStatus, foreignMessage] = await join(foreign);

    assert.equal(oldStatus, 400);
    assert.match(oldMessage, /A valid join token is necessary to join this cluster/);
    assert.equal(foreignStatus, 500);
    assert.match(foreignMessage, /^remote CA does not match fingerprint/);
    assert.deepEqual(await join('nonsense'), [400, 'invalid join token']);
    assert.equal((await two!.info()).LocalNodeState, 'inactive');
  });

  test('a node that left joins as another one; the old one can be removed, a present one only by force', async () => {
    const before = (await one!.nodes()).find(({ Status }) => Status.State === 'down')!;

    await two!.join(three!, 'Worker');

    const { ID } = await one!.node('host2', ({ Status }) => Status.State === 'ready');
    assert.notEqual(ID, before.ID);
    assert.equal((await one!.engine.delete(`/nodes/${before.ID}`)).status, 200);
    const refused = await one!.engine.delete<{ message: string }>(`/nodes/${ID}`);
    assert.equal(refused.status, 500);
    assert.match(refused.body.message, /is not down and can't be removed/);
    assert.equal((await one!.nodes()).length, 3);
  });

  test('a worker is down after its daemon was killed, and ready again when it is back', async () => {
    await two!.engine.kill();
    await one!.node('host2', ({ Status }) => Status.State === 'down');

    await two!.engine.startAgain();

    await one!.node('host2', ({ Status }) => Status.State === 'ready');
  });

  test('a node that was removed by force is heard no more', async () => {
    const { ID } = await one!.node('host2', ({ Status }) => Status.State === 'ready');

    assert.equal((await one!.engine.delete(`/nodes/${ID}?force=1`)).status, 200);

    await eventually('host2 says why', async () =>
      /may not do that here/.test((await two!.info()).Error) ? true : undefined,
    );
    assert.equal((await one!.nodes()).length, 2);
    assert.equal((await two!.engine.post('/swarm/leave?force=1')).status, 200);
  });
});

function isGone(pid: number): boolean {
  return !existsSync(`/proc/${pid}`);
}
