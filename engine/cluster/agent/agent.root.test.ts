import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

import type { Inspect, Summary } from '../../containers/schema.ts';

const ONCE = { RestartPolicy: { Condition: 'none' } };
const SECOND = 1e9;

suite('the tasks of a node', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let host: ClusterHost;
  let node: string;
  let services: Services;
  before(async () => {
    hosts = await ClusterHosts.start(1, { image: true });
    host = hosts.hosts[0]!;
    node = await host.init();
    services = new Services(host);
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  const nameOf = (service: string, { ID }: TaskWire): string => `${service}.1.${ID}`;
  const inspect = async (service: string, task: TaskWire): Promise<Inspect> =>
    (await host.engine.get<Inspect>(`/containers/${nameOf(service, task)}/json`)).body;
  const containersOf = async (service: string): Promise<Summary[]> => {
    const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.swarm.service.name=${service}`] }));
    return (await host.engine.get<Summary[]>(`/containers/json?all=1&filters=${filters}`)).body;
  };
  const remove = async (service: string): Promise<void> => {
    await services.remove(service);
    await eventually(`no container of ${service}`, async () =>
      (await containersOf(service)).length === 0 ? true : undefined,
    );
  };
  const again = async (): Promise<void> => {
    await host.engine.startAgain();
    await host.node('host1', ({ Status, ManagerStatus }) => Status.State === 'ready' && ManagerStatus?.Leader === true);
  };

  test('a service can be in the network of its nodes, alone and without ports of the ingress network', async () => {
    const { body: hostNetwork } = await host.engine.get<{ Id: string }>('/networks/host?scope=swarm');
    const names: unknown[] = [];
    for (const Target of ['host', 'bridge', hostNetwork.Id]) {
      await services.create('near', {}, { TaskTemplate: { Networks: [{ Target }] } });
      const [task] = await services.running('near', 1);
      const { HostConfig, NetworkSettings } = await inspect('near', task!);
      const { body } = await host.engine.get<{ Spec: { TaskTemplate: { Networks: object[] } } }>('/services/near');
      names.push([HostConfig.NetworkMode, Object.keys(NetworkSettings.Networks), body.Spec.TaskTemplate.Networks]);
      await remove('near');
    }
    const refused = async (Networks: object[], more: object = {}): Promise<number> => {
      const TaskTemplate = { ContainerSpec: { Image: 'busybox' }, Networks };
      return (await host.engine.post('/services/create', { Name: 'never', TaskTemplate, ...more })).status;
    };

    const inHost = ['host', ['host'], [{ Target: 'host' }]];
    assert.deepEqual(names, [inHost, ['default', ['bridge'], [{ Target: 'bridge' }]], inHost]);
    assert.equal(await refused([{ Target: 'host' }, { Target: 'bridge' }]), 400);
    const EndpointSpec = { Ports: [{ TargetPort: 80, PublishedPort: 8080 }] };
    assert.equal(await refused([{ Target: 'host' }], { EndpointSpec }), 400);
  });

  test('a task becomes a container by the fields of its template, with its name and labels', async () => {
    const labels = { mine: 'yes' };
    const id = await services.create(
      'web',
      {
        Command: ['sh', '-c'],
        Args: ['sleep 100000'],
        Env: ['A=b'],
        Dir: '/tmp',
        User: '1',
        Labels: labels,
        StopGracePeriod: 0,
        Mounts: [
          {
            Type: 'volume',
            Source: 'kept',
            Target: '/kept',
            VolumeOptions: { Labels: labels, DriverConfig: { Name: 'local' } },
          },
          { Type: 'bind', Source: '/etc', Target: '/bound', ReadOnly: true, BindOptions: { Propagation: 'private' } },
          { Type: 'volume', Target: '/anonymous' },
        ],
      },
      {
        TaskTemplate: {
          Resources: {
            Limits: { NanoCPUs: 5e8, MemoryBytes: 64 * 2 ** 20 },
            Reservations: { MemoryBytes: 2 ** 25 },
          },
          LogDriver: { Name: 'json-file', Options: { 'max-size': '1m' } },
        },
      },
    );

    const [task] = await services.running('web', 1);

    const { Name, Config, HostConfig, Mounts, State, Id } = await inspect('web', task!);
    assert.deepEqual(task!.Status.ContainerStatus, { ContainerID: Id, PID: State.Pid, ExitCode: 0 });
    assert.equal(task!.Status.Message, 'started');
    const name = nameOf('web', task!);
    assert.equal(Name, `/${name}`);
    const own = {
      task: '',
      'task.id': task!.ID,
      'task.name': name,
      'node.id': node,
      'service.id': id,
      'service.name': 'web',
    };
    const expected = ['com.docker.swarm', 'com.engine.swarm'].flatMap((prefix) =>
      Object.entries(own).map(([key, value]) => [`${prefix}.${key}`, value]),
    );
    assert.deepEqual(Config.Labels, { ...labels, ...Object.fromEntries(expected) });
    assert.deepEqual(
      [Config.Image, Config.Entrypoint, Config.Cmd, Config.WorkingDir, Config.User, Config.Env[0]],
      ['busybox:latest', ['sh', '-c'], ['sleep 100000'], '/tmp', '1', 'A=b'],
    );
    assert.deepEqual(
      [HostConfig.Memory, HostConfig.NanoCpus, HostConfig.MemoryReservation, HostConfig.LogConfig],
      [64 * 2 ** 20, 5e8, 0, { Type: 'json-file', Config: { 'max-size': '1m' } }],
    );
    assert.ok(['', 'no'].includes(HostConfig.RestartPolicy.Name));
    assert.deepEqual(Mounts.map(({ Type, Destination, RW }) => `${Type} ${Destination} ${RW}`).toSorted(), [
      'bind /bound false',
      'volume /anonymous true',
      'volume /kept true',
    ]);
    const volume = (await host.engine.get<{ Labels: object }>('/volumes/kept')).body;
    assert.deepEqual(volume.Labels, labels);
    const anonymous = Mounts.find(({ Destination }) => Destination === '/anonymous')!.Name!;

    await remove('web');

    assert.equal((await host.engine.get(`/volumes/${anonymous}`)).status, 404);
    assert.equal((await host.engine.delete('/volumes/kept')).status, 204);
  });

  test('without a command the arguments are those of the image’s entrypoint', async () => {
    await services.create('args', { Command: null, Args: ['sh', '-c', 'exit 0'] }, { TaskTemplate: ONCE });

    const task = await services.inState('args', 'complete');

    const { Config, State } = await inspect('args', task);
    assert.deepEqual([Config.Entrypoint, Config.Cmd, State.Status], [null, ['sh', '-c', 'exit 0'], 'exited']);
    await remove('args');
  });

  test('mounts have the options of later versions', async () => {
    const { body: volume } = await host.engine.post<{ Mountpoint: string }>('/volumes/create', { Name: 'parts' });
    await mkdir(join(volume.Mountpoint, 'one'));
    const made = join(host.engine.directory, 'made', 'by', 'daemon');
    const Mounts = [
      { Type: 'bind', Source: made, Target: '/made', BindOptions: { CreateMountpoint: true } },
      { Type: 'bind', Source: '/proc', Target: '/flat', ReadOnly: true, BindOptions: { ReadOnlyNonRecursive: true } },
      { Type: 'volume', Source: 'parts', Target: '/part', VolumeOptions: { Subpath: 'one' } },
      { Type: 'tmpfs', Target: '/memory', TmpfsOptions: { SizeBytes: 2 ** 20, Options: [['noexec']] } },
      { Type: 'image', Source: 'busybox', Target: '/image', ImageOptions: { Subpath: 'bin' } },
    ];
    const script = 'touch /made/x /part/x && grep -q " /memory tmpfs .*noexec" /proc/mounts && test -x /image/sh';
    await services.create('mounts', { Mounts, Command: ['sh', '-c', script] }, { TaskTemplate: ONCE });

    await services.inState('mounts', 'complete');

    const { raw } = await host.engine.get('/services/mounts');
    for (const mount of Mounts.slice(2)) assert.ok(raw.toString().includes(JSON.stringify(mount)), raw.toString());
    assert.ok(existsSync(join(made, 'x')) && existsSync(join(volume.Mountpoint, 'one', 'x')));
    await remove('mounts');
  });

  test('a task that replaces one is made at once, and waits for its delay before it runs', async () => {
    const command = ['sh', '-c', 'test -e /engine/go || exit 1; sleep 100000'];
    await services.create(
      'waits',
      {
        Command: command,
        StopGracePeriod: 0,
        Mounts: [{ Type: 'bind', Source: host.engine.directory, Target: '/engine' }],
      },
      { TaskTemplate: { RestartPolicy: { Condition: 'any', Delay: 5 * SECOND } } },
    );

    const waiting = await services.task(
      'waits',
      ({ DesiredState, Status }) => DesiredState === 'ready' && Status.State === 'ready',
    );

    assert.equal(waiting.Status.Message, 'prepared');
    await host.engine.onHost(['touch', `${host.engine.directory}/go`]);
    const [running] = await services.running('waits', 1);
    assert.equal(running!.DesiredState, 'running');
    await remove('waits');
  });

  test('ends and failures have dockerd’s states and messages, and the reason in full', async () => {
    const volume = { Type: 'volume', Source: 'q', Target: '/b' };
    const cases: [name: string, spec: object, state: string, message: string, error: RegExp, code?: number][] = [
      ['ok', { Command: ['true'] }, 'complete', 'finished', /^undefined$/, 0],
      ['three', { Command: ['sh', '-c', 'exit 3'] }, 'failed', 'started', /^task: non-zero exit \(3\)$/, 3],
      [
        'nowhere',
        { Command: ['/none'] },
        'failed',
        'starting',
        /^starting container failed: .*"\/none": stat \/none/,
        127,
      ],
      ['image', { Image: 'none-such:1' }, 'rejected', 'preparing', /^No such image: none-such:1 \(.+\)$/],
      [
        'bind',
        { Mounts: [{ Type: 'bind', Source: '/none', Target: '/b' }] },
        'rejected',
        'preparing',
        /^invalid mount config for type "bind": bind source path does not exist: \/none$/,
      ],
      [
        'options',
        { Mounts: [{ ...volume, VolumeOptions: { DriverConfig: { Name: 'local', Options: { type: 'none-such' } } } }] },
        'rejected',
        'preparing',
        /^create q: .+$/,
      ],
    ];
    for (const [name, spec] of cases) await services.create(name, spec, { TaskTemplate: ONCE });

    for (const [name, , state, message, error, code] of cases) {
      const { Status } = await services.inState(name, state);
      assert.equal(Status.Message, message, name);
      assert.match(String(Status.Err), error, name);
      assert.equal(Status.ContainerStatus?.ExitCode, code, name);
      await remove(name);
    }
  });

  test('a task that is to end is stopped within its grace; its container stays as long as its record', async () => {
    await services.create('stubborn', { Command: ['sleep', '100000'], StopGracePeriod: SECOND });
    await services.create('polite', { StopGracePeriod: 600 * SECOND });
    await Promise.all([services.running('stubborn', 1), services.running('polite', 1)]);
    // Another template replaces the task.
    const other = (spec: Record<string, unknown>): Record<string, unknown> => {
      const template = spec.TaskTemplate as { ContainerSpec: object };
      return { ...spec, TaskTemplate: { ...template, ContainerSpec: { ...template.ContainerSpec, Env: ['B=c'] } } };
    };

    await Promise.all([services.update('stubborn', other), services.update('polite', other)]);

    const stubborn = await services.inState('stubborn', 'shutdown');
    const polite = await services.inState('polite', 'shutdown');
    assert.deepEqual([stubborn.Status.Message, stubborn.Status.ContainerStatus?.ExitCode], ['shutdown', 137]);
    assert.deepEqual([polite.Status.ContainerStatus?.ExitCode, polite.Status.ContainerStatus?.PID], [0, 0]);
    assert.equal((await inspect('polite', polite)).State.Status, 'exited');
    await Promise.all([remove('stubborn'), remove('polite')]);
  });

  test('a container that a user removes is a failure of its task, which is replaced', async () => {
    await services.create('removed', {}, { TaskTemplate: { RestartPolicy: { Condition: 'any', Delay: 1 } } });
    const [task] = await services.running('removed', 1);

    await host.engine.delete(`/containers/${nameOf('removed', task!)}?force=1`);

    assert.equal((await services.inState('removed', 'failed')).Status.Err, 'task: non-zero exit (137)');
    const [next] = await services.running('removed', 1);
    assert.notEqual(next!.ID, task!.ID);
    await remove('removed');
  });

  test('a task with a health check runs once it is healthy, and fails when it is not any more', async () => {
    const image = async (name: string, flags: string): Promise<void> => {
      const id = await host.engine.create(['true']);
      const check = `HEALTHCHECK --interval=0.2s --retries=2 ${flags} CMD test -e /healthy && ! test -e /ill`;
      const path = `/commit?container=${id}&repo=${name}&changes=${encodeURIComponent(check)}`;
      assert.equal((await host.engine.post(path)).status, 201);
      await host.engine.delete(`/containers/${id}`);
    };
    const run = async (service: string, task: TaskWire, command: string): Promise<void> => {
      const path = `/containers/${nameOf(service, task)}/exec`;
      const id = await eventually(`an exec in ${service}`, async () => {
        const made = await host.engine.post<{ Id: string }>(path, { Cmd: ['sh', '-c', command] });
        return made.status === 201 ? made.body.Id : undefined; // until then it is being started
      });
      assert.equal((await host.engine.post(`/exec/${id}/start`, { Detach: true })).status, 200);
    };
    const Command = ['sh', '-c', 'trap "exit 5" TERM; sleep 100000 & wait'];
    await image('slow', '--start-period=3600s');
    await image('ill', '');
    await services.create('slow', { Image: 'slow', Command }, { TaskTemplate: ONCE });
    await services.create('ill', { Image: 'ill', Command }, { TaskTemplate: ONCE });

    await run('slow', await services.inState('slow', 'starting'), 'touch /healthy');
    await run('slow', await services.inState('slow', 'running'), 'touch /ill');
    const slow = await services.inState('slow', 'failed');
    const ill = await services.inState('ill', 'failed');

    assert.deepEqual(
      [slow.Status.Message, slow.Status.Err],
      ['started', 'task: non-zero exit (5): unhealthy container'],
    );
    assert.deepEqual(
      [ill.Status.Message, ill.Status.Err],
      ['starting', 'task: non-zero exit (5): unhealthy container'],
    );
    await Promise.all([remove('slow'), remove('ill')]);
  });

  test('containers of tasks have the events of any container, with the labels of their task', async () => {
    type Message = { Type: string; Action: string; Actor: { Attributes: Record<string, string> } };
    const since = Math.floor(Date.now() / 1000);
    await services.create('told', { Command: ['true'] }, { TaskTemplate: ONCE });
    const task = await services.inState('told', 'complete');
    await remove('told');

    const until = Math.ceil(Date.now() / 1000) + 1;
    const { raw } = await host.engine.get(`/events?since=${since}&until=${until}`);

    const events = raw
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Message)
      .filter(({ Actor }) => Actor.Attributes['com.docker.swarm.task.id'] === task.ID);
    assert.deepEqual(
      events.map(({ Type, Action }) => `${Type} ${Action}`),
      ['container create', 'container start', 'container die', 'container destroy'],
    );
  });

  test('after a SIGKILL of the daemon tasks run on, and ends of the meantime are reported', async () => {
    const Mounts = [{ Type: 'bind', Source: host.engine.directory, Target: '/engine' }];
    await services.create('stays');
    const Command = ['sh', '-c', 'while ! test -e /engine/end; do sleep 0.1; done; exit 4'];
    await services.create('ends', { Command, Mounts }, { TaskTemplate: ONCE });
    const [[before]] = await Promise.all([services.running('stays', 1), services.running('ends', 1)]);

    await host.engine.kill();
    await host.engine.onHost(['touch', `${host.engine.directory}/end`]);
    await again();

    assert.equal((await services.inState('ends', 'failed')).Status.Err, 'task: non-zero exit (4)');
    assert.deepEqual(await services.tasks('stays'), [before]);
    assert.equal((await inspect('stays', before!)).State.Pid, before!.Status.ContainerStatus?.PID);
    await Promise.all([remove('ends'), remove('stays')]);
  });

  test('a daemon that ends in order stops its tasks; the next one replaces them', async () => {
    await services.create('again', {}, { TaskTemplate: { RestartPolicy: { Condition: 'any', Delay: 1 } } });
    const [before] = await services.running('again', 1);

    await host.engine.kill('SIGTERM');
    await again();

    const [after] = await services.running('again', 1);
    assert.ok(after!.ID !== before!.ID || after!.Status.ContainerStatus!.PID === before!.Status.ContainerStatus!.PID);
    await remove('again');
  });

  test('a node that leaves ends its tasks, and nothing of them stays', async () => {
    await services.create('last');
    await services.running('last', 1);

    assert.equal((await host.engine.post('/swarm/leave?force=1')).status, 200);

    assert.deepEqual((await host.engine.get('/containers/json?all=1')).body, []);
  });
});
