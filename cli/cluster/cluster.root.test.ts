import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { refused, said } from '@gantry/testing/clients/own-client.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('swarm, node, service and task', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(2, { version: '1.25' });
    [one, two] = all.hosts;
  });
  after(async () => await all[Symbol.asyncDispose]());
  const on = async (host: ClusterHost | undefined, ...words: string[]): Promise<string> =>
    await said(host!.engine, ...words);

  test('a cluster is made, joined, changed', async () => {
    const told = await on(one, 'swarm', 'init', '--advertise-addr', 'eth0', '--listen-addr', 'eth0');
    const [, token = ''] = /gantry swarm join --token (\S+) 10\.77\.0\.1:2377/.exec(told) ?? [];
    assert.equal(await on(one, 'swarm', 'join-token', '-q', 'worker'), token);
    assert.equal(
      await on(two, 'swarm', 'join', '--listen-addr', 'eth0', '--token', token, '10.77.0.1:2377'),
      'This node joined a swarm as a worker.',
    );
    assert.equal(await on(one, 'swarm', 'update', '--task-history-limit', '2'), 'Swarm updated.');
    assert.notEqual(await on(one, 'swarm', 'join-token', '-q', '--rotate', 'worker'), token);

    await one!.node('host2', ({ Status }) => Status.State === 'ready');
    const [key = ''] = /SWMKEY-1-\S+/.exec(await on(one, 'swarm', 'update', '--autolock', 'true')) ?? [];
    assert.equal(await on(one, 'swarm', 'unlock-key', '-q'), key);
    const rotated = await on(one, 'swarm', 'unlock-key', '-q', '--rotate');
    assert.match(rotated, /^SWMKEY-1-/);
    assert.notEqual(rotated, key);
    assert.match((await refused(one!.engine, 'swarm', 'unlock')).stderr, /swarm is not locked/);
    assert.equal(await on(one, 'swarm', 'update', '--autolock', 'false'), 'Swarm updated.');
    assert.match((await refused(one!.engine, 'swarm', 'unlock-key')).stderr, /no unlock key is set/);
    const root = await on(one, 'swarm', 'ca');
    assert.match(root, /^-----BEGIN CERTIFICATE-----/);
    assert.match(await on(one, 'swarm', 'ca', '--rotate'), /being rotated/);
    await eventually('another root', async () => ((await on(one, 'swarm', 'ca')) === root ? undefined : true));
    const rows = await on(
      one,
      'node',
      'ls',
      '--format',
      '{{.Hostname}} {{.Status}} {{.Availability}} {{.ManagerStatus}}',
    );
    assert.equal(rows, 'host1 Ready Active Leader\nhost2 Ready Active');
    assert.match(await on(one, 'node', 'ls'), /^[0-9a-z]{25} \*\s+host1\s+Ready\s+Active\s+Leader/m);
    await on(one, 'node', 'update', '--availability', 'drain', '--label-add', 'rack=1', 'host2');
    assert.equal(
      await on(one, 'node', 'inspect', '--format', '{{.Spec.Availability}} {{.Spec.Labels.rack}}', 'host2'),
      'drain 1',
    );
  });

  test('a service is made, listed, changed, taken back and removed', async () => {
    const flags = [
      '--name',
      'web',
      '--replicas',
      '2',
      '--constraint',
      'node.labels.disk==fast',
      '--update-delay',
      '3s',
    ];
    await on(one, 'service', 'create', ...flags, '--env', 'A=1', 'busybox', 'sleep', '10');

    const reason =
      'no suitable node (1 node not available for new tasks; scheduling constraints not satisfied on 1 node)';
    const rows = await eventually('the reasons', async () => {
      const text = await on(one, 'service', 'ps', '--format', '{{.Name}} {{.Error}}', 'web');
      return text.includes('suitable') ? text : undefined;
    });
    assert.equal(rows, `web.1 ${reason}\nweb.2 ${reason}`);
    assert.ok((await on(one, 'service', 'ps', 'web')).includes(reason), 'in full');
    const row = '{{.Name}} {{.Mode}} {{.Replicas}} {{.Image}}';
    assert.equal(await on(one, 'service', 'ls', '--format', row), 'web replicated 0/2 busybox');
    assert.equal(await on(one, 'service', 'scale', 'web=1'), 'web scaled to 1');
    await on(one, 'service', 'update', '--env-add', 'B=2', '--env-rm', 'A', '--image', 'busybox:next', 'web');
    const format = '{{.Spec.TaskTemplate.ContainerSpec.Image}} {{.Spec.TaskTemplate.ContainerSpec.Env}}';
    assert.equal(await on(one, 'service', 'inspect', '--format', format, 'web'), 'busybox:next [B=2]');
    await on(one, 'service', 'rollback', 'web');
    assert.equal(await on(one, 'service', 'inspect', '--format', format, 'web'), 'busybox [A=1]');
    assert.match(await on(one, 'task', 'ls'), /web\.1/);
    const job = ['--mode', 'replicated-job', '--max-concurrent', '2', '--replicas', '5'];
    await on(one, 'service', 'create', '--name', 'job', ...job, '--constraint', 'node.id==none', 'busybox', 'true');
    assert.equal(
      await on(one, 'service', 'ls', '--filter', 'name=job', '--format', row),
      'job replicated job 0/2 (0/5 completed) busybox',
    );
    assert.equal(await on(one, 'service', 'scale', 'job=3'), 'job scaled to 3');
    const mode = '{{json .Spec.Mode}}';
    assert.match(
      await on(one, 'service', 'inspect', '--format', mode, 'job'),
      /"MaxConcurrent":2,"TotalCompletions":3/,
    );
    assert.equal(await on(one, 'service', 'rm', 'web', 'job'), 'web\njob');
    assert.equal(await on(one, 'service', 'ls', '-q'), '');
    assert.match((await refused(one!.engine, 'service', 'inspect', 'web')).stderr, /service web not found/);
  });
});
