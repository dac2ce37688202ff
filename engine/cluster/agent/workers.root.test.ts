import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';

import type { Summary } from '../../containers/schema.ts';

const SECOND = 1e9;
const REGISTRY = '10.77.0.1:5000';

suite('the tasks of several nodes', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let manager: ClusterHost;
  let worker: ClusterHost;
  let other: ClusterHost;
  let services: Services;
  before(async () => {
    hosts = await ClusterHosts.start(3, { image: true, flags: [`--insecure-registry=${REGISTRY}`] });
    [manager, worker, other] = hosts.hosts as [ClusterHost, ClusterHost, ClusterHost];
    // Nobody is down, however slow this machine is.
    await manager.init({ Spec: { Name: 'default', Dispatcher: { HeartbeatPeriod: 100 * SECOND } } });
    await Promise.all([worker.join(manager, 'Worker'), other.join(manager, 'Worker')]);
    services = new Services(manager);
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  const containersOn = async (host: ClusterHost, all = false): Promise<string[]> =>
    (await host.engine.get<Summary[]>(`/containers/json?all=${all}`)).body.map(({ Names }) => Names[0]!.split('.')[2]!);
  const idOf = async (host: ClusterHost): Promise<string> => (await host.info()).NodeID;
  const nothingLeft = async (): Promise<void> => {
    await eventually('no containers', async () => {
      const left = await Promise.all(hosts.hosts.map(async (host) => await containersOn(host, true)));
      return left.flat().length === 0 ? true : undefined;
    });
  };

  const beatEach = async (HeartbeatPeriod: number): Promise<void> => {
    await eventually('another period of heartbeats', async () => {
      const { Version, Spec } = await manager.swarm();
      const body = { ...Spec, Dispatcher: { HeartbeatPeriod } };
      const answer = await manager.engine.post(`/swarm/update?version=${Version.Index}`, body);
      return answer.status === 200 ? true : undefined;
    });
  };

  test('every node runs tasks, also the manager itself', async () => {
    await services.create('web', {}, { Mode: { Replicated: { Replicas: 3 } } });

    const tasks = await services.running('web', 3);

    for (const host of hosts.hosts) {
      const node = await idOf(host);
      const own = tasks.filter(({ NodeID }) => NodeID === node).map(({ ID }) => ID);
      assert.equal(own.length, 1);
      assert.deepEqual(await containersOn(host), own);
    }
  });

  test('a worker that is back in time has its tasks still, and nothing is replaced', async () => {
    const before = await services.running('web', 3);

    await worker.engine.kill();
    await worker.engine.startAgain();

    await manager.node('host2', ({ Status }) => Status.State === 'ready');
    // A change on its way shows that the session is there again.
    await services.create('probe', {}, { TaskTemplate: { Placement: { Constraints: ['node.hostname==host2'] } } });
    await services.running('probe', 1);
    await services.remove('probe');
    assert.deepEqual(await services.tasks('web'), before);
    const node = await idOf(worker);
    const own = before.filter(({ NodeID }) => NodeID === node).map(({ ID }) => ID);
    const stillThere = new Set(await containersOn(worker));
    assert.ok(own.every((id) => stillThere.has(id)));
    await services.remove('web');
    await nothingLeft();
  });

  test('without a manager tasks go on and none is replaced; ends are reported to the next one', async () => {
    const Placement = { Constraints: ['node.role==worker'] };
    const RestartPolicy = { Condition: 'any', Delay: 1 };
    await services.create(
      'alone',
      {},
      { Mode: { Replicated: { Replicas: 2 } }, TaskTemplate: { Placement, RestartPolicy } },
    );
    const before = await services.running('alone', 2);
    const [ended] = await containersOn(worker);
    const [stays] = await containersOn(other);

    await manager.engine.kill();
    const name = `alone.${before.find(({ ID }) => ID === ended)!.Slot}.${ended}`;
    assert.equal((await worker.engine.post(`/containers/${name}/kill`)).status, 204);
    await eventually('the end', async () => ((await containersOn(worker)).length === 0 ? true : undefined));
    await other.engine.kill();
    await other.engine.startAgain();
    assert.deepEqual(await containersOn(other), [stays]);
    await manager.engine.startAgain();

    const failed = await services.task('alone', ({ ID, Status }) => ID === ended && Status.State === 'failed');
    assert.equal(failed.Status.Err, 'task: non-zero exit (137)');
    const after = await services.running('alone', 2);
    assert.ok(after.some(({ ID }) => ID === stays));
    await services.remove('alone');
    await nothingLeft();
  });

  test('tasks of a lost worker are replaced; when it is back, those that it still has end', async () => {
    await services.create('web', {}, { Mode: { Replicated: { Replicas: 3 } } });
    const lost = await idOf(worker);
    const stale = await services.task('web', ({ NodeID, Status }) => NodeID === lost && Status.State === 'running');
    await services.running('web', 3);
    // All nodes hear of it: else the others would be down too.
    await beatEach(5 * SECOND);

    await hosts.plug(worker, false);

    await manager.node('host2', ({ Status }) => Status.State === 'down');
    assert.equal((await manager.node('host3')).Status.State, 'ready');
    await eventually('three tasks on the others', async () =>
      (await services.running('web', 3)).every(({ NodeID }) => NodeID !== lost) ? true : undefined,
    );
    assert.deepEqual(await containersOn(worker), [stale.ID]);
    await hosts.plug(worker, true);
    await services.task('web', ({ ID, Status }) => ID === stale.ID && Status.State === 'shutdown');
    assert.deepEqual(await containersOn(worker), []);
    assert.equal((await services.running('web', 3)).length, 3);
    await beatEach(100 * SECOND);
    await services.remove('web');
    await nothingLeft();
  });

  test('credentials of a registry go to the node that runs the task only, and are not stored there', async () => {
    await using registries = await Registries.start(manager.engine.netns);
    await registries.registry(5000, { users: { user: 'password-of-it' }, address: '10.77.0.1' });
    const auth = Buffer.from(JSON.stringify({ username: 'user', password: 'password-of-it' })).toString('base64url');
    const headers = { 'X-Registry-Auth': auth };
    const image = `${REGISTRY}/private/box`;
    await manager.engine.post(`/images/busybox/tag?repo=${image}`);
    const pushed = await manager.engine.post(`/images/${image}/push?tag=latest`, undefined, { headers });
    assert.doesNotMatch(pushed.raw.toString(), /errorDetail/);
    const TaskTemplate = { Placement: { Constraints: ['node.hostname==host2'] } };

    await services.create('open', { Image: image }, { TaskTemplate });
    const refused = await services.inState('open', 'rejected');
    await services.create('private', { Image: image }, { TaskTemplate }, headers);
    await services.running('private', 1);

    assert.match(
      String(refused.Status.Err),
      /^No such image: 10\.77\.0\.1:5000\/private\/box:latest \(.*(?:basic auth|unauthorized|denied)/,
    );
    for (const host of [worker, other]) {
      const places = [host.engine.dataRoot, join(host.engine.directory, 'log')];
      const { status, stdout } = spawnSync('grep', ['-rlazE', '--', `${auth}|password-of-it`, ...places], {
        encoding: 'utf8',
      });
      assert.deepEqual([status, stdout], [1, '']);
    }
    await Promise.all([services.remove('open'), services.remove('private')]);
    await nothingLeft();
  });

  test('a worker that leaves ends its tasks, which others take over', async () => {
    await services.create('moves', {}, { Mode: { Replicated: { Replicas: 3 } } });
    await services.running('moves', 3);
    const left = await idOf(worker);

    assert.equal((await worker.engine.post('/swarm/leave')).status, 200);

    assert.deepEqual(await containersOn(worker, true), []);
    const isElsewhere = (tasks: TaskWire[]): boolean => tasks.every(({ NodeID }) => NodeID !== left);
    await eventually('three tasks elsewhere', async () =>
      isElsewhere(await services.running('moves', 3)) ? true : undefined,
    );
    await services.remove('moves');
    await nothingLeft();
  });
});
