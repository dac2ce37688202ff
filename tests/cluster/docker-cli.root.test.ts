import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

suite("docker's command line and a cluster", { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(2);
    [one, two] = all.hosts;
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function docker(host: ClusterHost, ...words: string[]): Promise<string> {
    const { stdout, stderr, code } = await host.engine.docker(...words);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  }

  test('swarm init tells how to join, and join does so', async () => {
    const told = await docker(
      one!,
      'swarm',
      'init',
      '--advertise-addr',
      'eth0',
      '--listen-addr',
      'eth0',
      '--task-history-limit',
      '7',
    );
    const [, token = ''] = /--token (\S+) 10\.77\.0\.1:2377/.exec(told) ?? [];

    assert.equal(await docker(one!, 'swarm', 'join-token', '-q', 'worker'), token);
    assert.equal(
      await docker(two!, 'swarm', 'join', '--token', token, '10.77.0.1:2377'),
      'This node joined a swarm as a worker.',
    );
    assert.match(
      await docker(one!, 'info'),
      /Swarm: active[^]*Is Manager: true[^]*Managers: 1\n\s+Nodes: 2[^]*Task History Retention Limit: 7/,
    );
  });

  test('node ls, inspect, update, promote, demote and rm', async () => {
    await one!.node('host2', ({ Status }) => Status.State === 'ready');
    const rows = await docker(
      one!,
      'node',
      'ls',
      '--format',
      '{{.Hostname}} {{.Status}} {{.Availability}} {{.ManagerStatus}}',
    );
    assert.deepEqual(rows.split('\n').toSorted(), ['host1 Ready Active Leader', 'host2 Ready Active']);

    await docker(one!, 'node', 'update', '--label-add', 'rack=1', '--availability', 'drain', 'host2');
    assert.equal(
      await docker(one!, 'node', 'inspect', '--format', '{{.Spec.Availability}} {{.Spec.Labels.rack}}', 'host2'),
      'drain 1',
    );
    assert.match(
      await docker(one!, 'node', 'inspect', '--pretty', 'self'),
      /Hostname:\s+host1[^]*Reachable[^]*Leader:\s+Yes/i,
    );
    assert.match(await docker(one!, 'node', 'promote', 'host2'), /promoted to a manager/);
    await one!.node('host2', ({ ManagerStatus, Status }) => ManagerStatus !== undefined && Status.State === 'ready');
    assert.match(await docker(one!, 'node', 'demote', 'host2'), /demoted/);
    await one!.node('host2', ({ ManagerStatus, Status }) => ManagerStatus === undefined && Status.State === 'ready');

    assert.equal(await docker(two!, 'swarm', 'leave'), 'Node left the swarm.');
    await one!.node('host2', ({ Status }) => Status.State === 'down');
    assert.equal(await docker(one!, 'node', 'rm', 'host2'), 'host2');
  });

  test('service create, ls, ps, inspect, update, scale and rm', async () => {
    const nowhere = ['--constraint', 'node.labels.disk==fast'];
    const id = await docker(one!, 'service', 'create', '-d', '--name', 'web', '--replicas', '2', ...nowhere, 'busybox');
    await one!.node('host1', ({ Status }) => Status.State === 'ready');

    assert.match(id, /^[0-9a-z]{25}$/m);
    const row = '{{.Name}} {{.Mode}} {{.Replicas}} {{.Image}}';
    assert.equal(await docker(one!, 'service', 'ls', '--format', row), 'web replicated 0/2 busybox:latest');
    const reason = await docker(one!, 'service', 'ps', '--no-trunc', '--format', '{{.Name}} {{.Error}}', 'web');
    assert.deepEqual(reason.split('\n').toSorted(), [
      'web.1 "no suitable node (scheduling constraints not satisfied on 1 node)"',
      'web.2 "no suitable node (scheduling constraints not satisfied on 1 node)"',
    ]);
    await docker(one!, 'service', 'scale', '-d', 'web=1');
    await docker(one!, 'service', 'update', '-d', '--label-add', 'a=b', '--update-delay', '3s', 'web');
    assert.match(
      await docker(one!, 'service', 'inspect', '--pretty', 'web'),
      /Name:\s+web[^]*a=b[^]*Replicas:\s+1[^]*Delay:\s+3s/,
    );
    assert.equal(await docker(one!, 'service', 'rm', 'web'), 'web');
    assert.equal(await docker(one!, 'service', 'ls', '-q'), '');
  });

  test('swarm update and rotated tokens', async () => {
    const before = await docker(one!, 'swarm', 'join-token', '-q', 'worker');
    assert.equal(
      await docker(one!, 'swarm', 'update', '--cert-expiry', '48h', '--dispatcher-heartbeat', '6s'),
      'Swarm updated.',
    );
    assert.notEqual(await docker(one!, 'swarm', 'join-token', '-q', '--rotate', 'worker'), before);

    assert.match(await docker(one!, 'info'), /Heartbeat Period: 6 seconds[^]*Expiry Duration: 2 days/);
    const leave = await one!.engine.docker('swarm', 'leave');
    assert.match(leave.stderr, /Use `--force` to ignore this message/);
    assert.equal(await docker(one!, 'swarm', 'leave', '--force'), 'Node left the swarm.');
  });
});
