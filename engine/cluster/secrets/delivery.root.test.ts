import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const ON_WORKER = { Placement: { Constraints: ['node.role == worker'] } };
const VALUE = `value-${randomBytes(12).toString('hex')}`;
const NEW_VALUE = `value-${randomBytes(12).toString('hex')}`;
const TEMPLATE =
  '{{.Service.Name}}/{{index .Service.Labels "tier"}}/{{.Node.Hostname}}/{{.Task.Slot}}/{{env "COLOR"}}/{{env "NONE"}}/{{secret "password"}}/{{json .Service.Labels}}';

type Kind = 'Secret' | 'Config';

/** A daemon that is started again on a slow machine is not down meanwhile: its tasks would be replaced. */
async function allowSlowStarts(manager: ClusterHost): Promise<void> {
  const { Version, Spec } = await manager.swarm();
  const body = { ...Spec, Dispatcher: { HeartbeatPeriod: 100e9 } };
  const answer = await manager.engine.post(`/swarm/update?version=${Version.Index}`, body);
  assert.equal(answer.status, 200, answer.raw.toString());
}

suite('secrets and configs of tasks', { concurrency: false }, () => {
  let all: ClusterHosts;
  let worker: ClusterHost;
  let manager: ClusterHost;
  let services: Services;
  const ids = new Map<string, string>();
  before(async () => {
    all = await ClusterHosts.cluster(3, 1, { image: true, version: '1.41' });
    [manager, , , worker] = all.hosts as [ClusterHost, ClusterHost, ClusterHost, ClusterHost];
    services = new Services(manager);
    await allowSlowStarts(manager);
    for (const [kind, name, data, more] of [
      ['Secret', 'password', VALUE, {}],
      ['Secret', 'new-password', NEW_VALUE, {}],
      ['Config', 'page', TEMPLATE, { Templating: { Name: 'golang' } }],
      ['Config', 'odd', 'x', { Templating: { Name: 'other' } }],
      ['Config', 'large', 'x'.repeat(1000 * 1024 - 1), {}],
    ] as const) {
      ids.set(name, await create(all.hosts[1]!, kind, name, data, more));
    }
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function create(host: ClusterHost, kind: Kind, Name: string, data: string, more: object): Promise<string> {
    const body = { Name, Data: Buffer.from(data).toString('base64'), ...more };
    const answer = await host.engine.post<{ ID: string }>(`/${kind.toLowerCase()}s/create`, body);
    assert.equal(answer.status, 201, answer.raw.toString());
    return answer.body.ID;
  }

  function reference(kind: Kind, name: string, file: object = {}): object {
    const File = { Name: name, UID: '0', GID: '0', Mode: 0o444, ...file };
    return { [`${kind}ID`]: ids.get(name), [`${kind}Name`]: name, File };
  }

  async function said(task: TaskWire, ...Cmd: string[]): Promise<string> {
    const ref = task.Status.ContainerStatus!.ContainerID;
    const settings = { Cmd, AttachStdout: true, AttachStderr: true, Tty: true };
    const { body } = await worker.engine.post<{ Id: string }>(`/containers/${ref}/exec`, settings);
    const { raw } = await worker.engine.post(`/exec/${body.Id}/start`, { Tty: true });
    return raw.toString().replaceAll('\r', '').trimEnd();
  }

  async function running(): Promise<TaskWire> {
    const [task] = await services.running('web', 1);
    return task!;
  }

  test('a task sees its files, with their owner and mode, and cannot write them', async () => {
    await services.create(
      'web',
      {
        Env: ['COLOR=red=1'],
        Secrets: [reference('Secret', 'password', { UID: '7', GID: '8', Mode: 0o440 })],
        Configs: [
          reference('Config', 'page'),
          reference('Config', 'page', { Name: '/etc/app/page.html', Mode: 0o755 }),
          reference('Config', 'large', { Name: 'deep/large' }),
        ],
      },
      { Labels: { tier: 'front' }, TaskTemplate: ON_WORKER },
    );
    const task = await running();

    assert.equal(await said(task, 'cat', '/run/secrets/password'), VALUE);
    assert.equal(await said(task, 'stat', '-c', '%u %g %a', '/run/secrets/password'), '7 8 440');
    assert.equal(await said(task, 'cat', '/page'), `web/front/${worker.name}/1/red=1//${VALUE}/{"tier":"front"}`);
    assert.equal(await said(task, 'stat', '-c', '%u %g %a', '/etc/app/page.html'), '0 0 755');
    assert.equal(await said(task, 'sh', '-c', 'wc -c < /deep/large'), String(1000 * 1024 - 1));
    assert.match(await said(task, 'sh', '-c', 'echo x > /page'), /Read-only file system/);
    const mounted = await said(task, 'grep', '/run/secrets/password', '/proc/mounts');
    assert.match(mounted, /^tmpfs .* ro,/);
  });

  test('no disk, no mount of the host and no answer has the value', async () => {
    for (const { engine, name } of all.hosts) {
      // -z: the zeros at the end of etcd's log are not one line of 64 MB.
      const found = spawnSync('grep', [
        '-rlazF',
        '-e',
        VALUE,
        '-e',
        Buffer.from(VALUE).toString('base64'),
        engine.directory,
      ]);
      assert.equal(found.stdout.toString(), '', name);
      assert.doesNotMatch(readFileSync(`/proc/${engine.pid}/mounts`, 'utf8'), /files tmpfs/);
      assert.doesNotMatch(engine.log, new RegExp(VALUE));
    }
    const now = String(Math.ceil(Date.now() / 1000) + 1);
    for (const path of ['/secrets', '/secrets/password', '/services', '/tasks', `/events?since=0&until=${now}`]) {
      const { status, raw } = await manager.engine.get(path);
      assert.equal(status, 200);
      assert.doesNotMatch(raw.toString(), new RegExp(`${VALUE}|${Buffer.from(VALUE).toString('base64')}`), path);
    }
  });

  test('every manager shows a config, and tells of the creations', async () => {
    const now = String(Math.ceil(Date.now() / 1000) + 1);
    for (const { engine } of all.hosts.slice(0, 3)) {
      const { body } = await engine.get<{ Spec: { Data: string } }>('/configs/page');
      assert.equal(Buffer.from(body.Spec.Data, 'base64').toString(), TEMPLATE);
      const { raw } = await engine.get(`/events?since=0&until=${now}&filters={"type":["secret","config"]}`);
      const events = raw
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { Action: string; scope: string });
      assert.deepEqual(new Set(events.map(({ Action, scope }) => `${Action} ${scope}`)), new Set(['create swarm']));
      assert.equal(events.length, ids.size);
    }
  });

  test('the files stay over a kill of the node’s daemon, and the next task gets them', async () => {
    const task = await running();
    await worker.engine.kill();
    await worker.engine.startAgain();

    assert.equal(await said(task, 'cat', '/run/secrets/password'), VALUE);

    const container = task.Status.ContainerStatus!.ContainerID;
    await worker.engine.post(`/containers/${container}/kill`);
    const next = await services.task('web', ({ ID, Status }) => ID !== task.ID && Status.State === 'running');
    assert.equal(await said(next, 'cat', '/run/secrets/password'), VALUE);
  });

  test('an update to another secret rolls the task, under another leader', async () => {
    const before = await running();
    const leader = await all.leader();
    await leader.engine.kill();
    await leader.engine.startAgain();
    await all.leader(all.hosts.slice(0, 3));

    await services.update('web', (spec) => {
      const template = spec['TaskTemplate'] as { ContainerSpec: object };
      const Secrets = [reference('Secret', 'new-password', { Name: 'password' })];
      return { ...spec, TaskTemplate: { ...template, ContainerSpec: { ...template.ContainerSpec, Secrets } } };
    });
    const task = await services.task('web', ({ ID, Status }) => ID !== before.ID && Status.State === 'running');

    assert.equal(await said(task, 'cat', '/run/secrets/password'), NEW_VALUE);
  });

  test('a task that cannot have its files fails with the reason', async () => {
    for (const [name, spec, reason] of [
      [
        'bad-uid',
        { Secrets: [reference('Secret', 'password', { UID: 'bob' })] },
        'strconv.Atoi: parsing "bob": invalid syntax',
      ],
      [
        'bad-target',
        { Secrets: [reference('Secret', 'password', { Name: '/' })] },
        'the target / of a secret is a folder',
      ],
      [
        'bad-template',
        { Configs: [reference('Config', 'odd')] },
        `unable to get config from config store: failed to expand templated config ${ids.get('odd')!}: unrecognized template type`,
      ],
      [
        'bad-field',
        { Configs: [reference('Config', 'page')] },
        `unable to get config from config store: failed to expand templated config ${ids.get('page')!}: secret target password not found`,
      ],
    ] as const) {
      await services.create(name, spec, { TaskTemplate: { RestartPolicy: { Condition: 'none' } } });
      const { Status } = await services.inState(name, 'failed');
      assert.equal(Status.Err, `starting container failed: ${reason}`);
      await services.remove(name);
    }
  });

  test('nothing of them stays on the node when the service is gone', async () => {
    const mounts = (): string =>
      spawnSync('sh', [
        '-c',
        `grep -l '${worker.engine.directory}.*/files tmpfs' /proc/[0-9]*/mounts`,
      ]).stdout.toString();
    assert.notEqual(mounts(), '');

    await services.remove('web');
    await eventually('the container is gone', async () => {
      const { body } = await worker.engine.get<unknown[]>('/containers/json?all=1');
      return body.length === 0 || undefined;
    });

    await eventually('no process has the mount', async () => {
      return await Promise.resolve(mounts() === '' || undefined);
    });
    for (const name of ['password', 'new-password']) {
      assert.equal((await manager.engine.delete(`/secrets/${name}`)).status, 204);
    }
  });
});
