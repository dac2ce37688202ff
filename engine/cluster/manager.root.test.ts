import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const refused = async (host: ClusterHost, method: 'get' | 'post' | 'delete', path: string, body?: object) => {
  const answer =
    method === 'post'
      ? await host.engine.post<{ message: string }>(path, body)
      : await host.engine[method]<{ message: string }>(path);
  return [answer.status, answer.body.message];
};

suite('a cluster of one', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let host: ClusterHost;
  before(async () => {
    hosts = await ClusterHosts.start(1);
    host = hosts.hosts[0]!;
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  const inFolder = (name: string): string => join(host.engine.directory, 'data/cluster', name);

  test('a bad request makes no cluster, and leaves nothing behind', async () => {
    const bodies: [body: object, message: RegExp][] = [
      [{}, /^invalid ListenAddr/],
      [{ ListenAddr: 'nowhere' }, /^listen address must be an IP address/],
      [{ ListenAddr: '0.0.0.0', AdvertiseAddr: '0.0.0.0' }, /^advertise address must be a non-zero/],
      [{ ListenAddr: '0.0.0.0', Spec: { Name: 'other' } }, /^swarm spec must be named "default"/],
      [
        { ListenAddr: '0.0.0.0', Spec: { CAConfig: { NodeCertExpiry: 1000 } } },
        /minimum certificate expiry time is: 1h0m0s/,
      ],
      [{ ListenAddr: '0.0.0.0', Spec: { Dispatcher: { HeartbeatPeriod: -1 } } }, /cannot be a negative duration/],
    ];

    for (const [body, message] of bodies) {
      const [status, said] = await refused(host, 'post', '/swarm/init', body);
      assert.equal(status, 400, JSON.stringify(body));
      assert.match(String(said), message);
    }
    const [status, said] = await refused(host, 'post', '/swarm/init', { ListenAddr: '10.99.99.99' });
    assert.equal(status, 500);
    assert.match(String(said), /^manager stopped: failed to listen on remote API address/);
    assert.equal((await host.info()).LocalNodeState, 'inactive');
    await assert.rejects(host.etcdPid());
  });

  test('the one node leads, is ready, and /info shows its cluster', async () => {
    const id = await host.init({ Spec: { Labels: { a: 'b' }, Orchestration: { TaskHistoryRetentionLimit: 3 } } });

    const swarm = await host.swarm();
    // On a slow machine a leader may lose its lease, and lead again.
    const node = await host.node('host1', (its) => its.Status.State === 'ready' && its.ManagerStatus?.Leader === true);
    const [, ...others] = await host.nodes();
    const info = (await host.engine.get<{ Swarm: Record<string, unknown> }>('/info')).body.Swarm;
    assert.match(id, /^[0-9a-z]{25}$/);
    assert.equal(node.ID, id);
    assert.deepEqual(others, []);
    assert.deepEqual(node.Status, { State: 'ready', Addr: '10.77.0.1' });
    assert.deepEqual(node.ManagerStatus, { Leader: true, Reachability: 'reachable', Addr: '10.77.0.1:2377' });
    assert.equal(node.Description.Hostname, 'host1');
    assert.match(swarm.JoinTokens.Worker, /^SWMTKN-1-[0-9a-z]{50}-[0-9a-z]{25}$/);
    assert.deepEqual((swarm.Spec as { Labels: object }).Labels, { a: 'b' });
    assert.equal(info.ControlAvailable, true);
    assert.equal((info.Cluster as { ID: string }).ID, swarm.ID);
    assert.ok(!JSON.stringify(info).includes('SWMTKN'));
  });

  test('it listens on the address that was named, and nowhere else', async () => {
    const listening = await host.engine.onHost(['ss', '-Hltn']);

    const addresses = listening
      .split('\n')
      .map((line) => line.split(/\s+/)[3])
      .filter((address) => address !== undefined);
    assert.deepEqual(addresses.toSorted(), ['10.77.0.1:2377', '10.77.0.1:2378']);
  });

  test('init and join inside are refused, and so is leaving as a manager without force', async () => {
    const inside =
      'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.';

    const join = { ListenAddr: '10.77.0.1', RemoteAddrs: ['10.77.0.9'], JoinToken: 'x' };
    assert.deepEqual(await refused(host, 'post', '/swarm/init', { ListenAddr: '10.77.0.1' }), [406, inside]);
    assert.deepEqual(await refused(host, 'post', '/swarm/join', join), [406, inside]);
    const [status, said] = await refused(host, 'post', '/swarm/leave');
    assert.equal(status, 406);
    assert.match(String(said), /Removing the last manager erases all current state of the swarm/);
  });

  test('an update of the present version is stored, of another one refused; tokens change one by one', async () => {
    const before = await host.swarm();
    const update = async (query: string, body: object) =>
      await host.engine.post<{ message: string }>(`/swarm/update?${query}`, body);

    const done = await update(`version=${before.Version.Index}&rotateWorkerToken=1`, {
      Name: 'default',
      Labels: { c: 'd' },
    });
    const late = await update(`version=${before.Version.Index}`, { Name: 'default' });

    const now = await host.swarm();
    assert.equal(done.status, 200);
    assert.deepEqual(
      [late.status, late.body.message],
      [500, 'rpc error: code = Unknown desc = update out of sequence'],
    );
    assert.deepEqual((now.Spec as { Labels: object }).Labels, { c: 'd' });
    assert.notEqual(now.JoinTokens.Worker, before.JoinTokens.Worker);
    assert.equal(now.JoinTokens.Manager, before.JoinTokens.Manager);
    assert.ok(now.Version.Index > before.Version.Index);
    assert.equal((await update('version=x', { Name: 'default' })).status, 400);
    assert.equal((await update(`version=${now.Version.Index}`, { Name: 'x' })).status, 400);
    for (const spec of [
      { Raft: { SnapshotInterval: 1e25 } },
      { CAConfig: { NodeCertExpiry: 1e25 } },
      { Dispatcher: { HeartbeatPeriod: 1e25 } },
    ]) {
      assert.equal((await update(`version=${now.Version.Index}`, spec)).status, 400, JSON.stringify(spec));
    }
  });

  test('a node is found by id, beginning of an id and host name; updates replace its specification', async () => {
    const { ID, Version } = await host.node('host1');
    const path = `/nodes/${ID}/update`;
    const spec = { Role: 'manager', Availability: 'drain', Labels: { rack: '1' } };

    for (const ref of [ID, ID.slice(0, 6), 'host1']) {
      assert.equal((await host.engine.get<{ ID: string }>(`/nodes/${ref}`)).body.ID, ID);
    }
    assert.deepEqual(await refused(host, 'get', '/nodes/none'), [404, 'node none not found']);
    assert.deepEqual(await refused(host, 'post', `${path}?version=${Version.Index}`, {}), [400, 'invalid Role: ""']);
    assert.deepEqual(await refused(host, 'post', `${path}?version=${Version.Index}`, { Role: 'manager' }), [
      400,
      'invalid Availability: ""',
    ]);
    assert.equal((await host.engine.post(`${path}?version=${Version.Index}`, spec)).status, 200);
    assert.deepEqual((await host.node('host1')).Spec, spec);
    assert.equal((await refused(host, 'post', `${path}?version=${Version.Index}`, spec))[0], 500);
    const current = (await host.node('host1')).Version.Index;
    const [status, said] = await refused(host, 'post', `${path}?version=${current}`, { ...spec, Role: 'worker' });
    assert.equal(status, 500);
    assert.match(String(said), /attempting to demote the last manager of the swarm/);
    assert.equal((await refused(host, 'delete', `/nodes/${ID}?force=1`))[0], 500);
  });

  test('filters of the list', async () => {
    const { ID } = await host.node('host1');
    const count = async (filters: object): Promise<number | string> => {
      const answer = await host.engine.get<unknown[]>(`/nodes?filters=${encodeURIComponent(JSON.stringify(filters))}`);
      return answer.status === 200 ? answer.body.length : `${answer.status}`;
    };

    const cases: [filters: object, expected: number | string][] = [
      [{ id: [ID.slice(0, 5)] }, 1],
      [{ id: ['no'] }, 0],
      [{ name: ['hos'] }, 1],
      [{ name: ['zzz'] }, 0],
      [{ role: ['manager'] }, 1],
      [{ role: ['worker'] }, 0],
      [{ role: ['other'] }, '400'],
      [{ membership: ['accepted'] }, 1],
      [{ membership: ['pending'] }, 0],
      [{ membership: ['other'] }, '400'],
      [{ label: ['rack'] }, 0],
      [{ 'node.label': ['rack=1'] }, 1],
      [{ other: ['x'] }, '400'],
    ];

    for (const [filters, expected] of cases) assert.equal(await count(filters), expected, JSON.stringify(filters));
  });

  test('the cluster survives the SIGKILL of the daemon, while its etcd goes on, and an orderly end', async () => {
    const { ID } = await host.swarm();
    const etcd = await host.etcdPid();

    await host.engine.kill();
    await host.engine.startAgain();
    await host.node('host1', ({ Status, ManagerStatus }) => Status.State === 'ready' && ManagerStatus?.Leader === true);
    assert.equal((await host.swarm()).ID, ID);
    assert.equal(await host.etcdPid(), etcd);

    await host.engine.kill('SIGTERM');
    await host.engine.startAgain();
    await host.node('host1', ({ Status, ManagerStatus }) => Status.State === 'ready' && ManagerStatus?.Leader === true);
    assert.notEqual(await host.etcdPid(), etcd);
    await host.updateNode('host1', { Labels: { after: 'it' } });
  });

  test("a client's values have limits, and are refused without an effect on others", async () => {
    const Labels = { large: 'x'.repeat(600 * 1024) };
    const [swarm, node] = [await host.swarm(), await host.node('host1')];
    const spec = { Role: 'manager', Availability: 'active' };
    const cases: [path: string, body: object, message: string][] = [
      [`/swarm/update?version=${swarm.Version.Index}`, { Labels }, 'the specification of a cluster is 512 KB at most'],
      [
        `/nodes/${node.ID}/update?version=${node.Version.Index}`,
        { ...spec, Labels },
        'the specification of a node is 512 KB at most',
      ],
      [
        '/networks/create',
        { Name: 'large', Driver: 'overlay', Labels },
        'the settings of a network of the cluster are 512 KB at most',
      ],
      [
        '/services/create',
        { Labels: { large: 'é'.repeat(300 * 1024) }, TaskTemplate: { ContainerSpec: { Image: 'busybox' } } },
        'the specification of a service is 512 KB at most',
      ],
    ];

    for (const [path, body, message] of cases) {
      assert.deepEqual(await refused(host, 'post', path, body), [400, message]);
    }
    await host.updateNode('host1', { Labels: { small: 'x'.repeat(400 * 1024) } });
    await host.updateNode('host1', { Labels: {} });
  });

  test('an etcd that was killed is started again, and writes go on', async () => {
    const etcd = await host.etcdPid();

    process.kill(etcd, 'SIGKILL');
    await eventually('another etcd', async () => ((await host.etcdPid()) === etcd ? undefined : true));

    await host.updateNode('host1', { Labels: { still: 'here' } });
    assert.deepEqual((await host.node('host1')).Spec.Labels, { still: 'here' });
  });

  test('a forced leave removes the files of etcd after its end, and another cluster can be made', async () => {
    const { ID } = await host.swarm();
    const etcd = await host.etcdPid();

    process.kill(etcd, 'SIGSTOP'); // so that its end takes a while
    const leaving = host.engine.post('/swarm/leave?force=1');
    await eventually('the identity is removed', async () => (existsSync(inFolder('member.json')) ? undefined : true));
    const filesOfEtcd = existsSync(inFolder('etcd/member/wal'));
    process.kill(etcd, 'SIGCONT');
    const { status } = await leaving;

    assert.equal(status, 200);
    assert.ok(filesOfEtcd, 'a running etcd has its files');
    assert.equal(existsSync(inFolder('.')), false);
    assert.equal((await host.info()).LocalNodeState, 'inactive');
    assert.equal((await host.engine.get('/swarm')).status, 406);
    assert.equal((await host.engine.onHost(['ss', '-Hltn'])).trim(), '');
    await host.init();
    assert.notEqual((await host.swarm()).ID, ID);
  });

  test('a leave succeeds with files that cannot be removed; init is refused until they are', async () => {
    mkdirSync(inFolder('mounted'));
    await host.engine.onHost(['mount', '-t', 'tmpfs', 'none', inFolder('mounted')]);
    try {
      assert.equal((await host.engine.post('/swarm/leave?force=1')).status, 200);

      assert.equal((await host.info()).LocalNodeState, 'inactive');
      assert.deepEqual(await refused(host, 'post', '/swarm/init', { ListenAddr: host.ip }), [
        500,
        'files of an earlier cluster could not be removed from this node: see its log',
      ]);
    } finally {
      await host.engine.onHost(['umount', inFolder('mounted')]);
    }
    await host.init();
  });
});
