import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Spec = { EncryptionConfig: { AutoLockManagers: boolean } };

const AUTO_LOCK = { Spec: { EncryptionConfig: { AutoLockManagers: true } } };

suite('managers with auto-lock', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  let key: string;
  before(async () => {
    all = await ClusterHosts.start(3, { image: true, version: '1.41' });
    [one, two, three] = all.hosts;
    await one!.init(AUTO_LOCK);
    await two!.join(one!, 'Manager');
    await three!.join(one!, 'Manager');
    key = await keyOf(one!);
  });
  after(async () => await all[Symbol.asyncDispose]());

  const keyOf = async ({ engine }: ClusterHost): Promise<string> =>
    (await engine.get<{ UnlockKey: string }>('/swarm/unlockkey')).body.UnlockKey;
  const unlock = async ({ engine }: ClusterHost, text: string): Promise<number> =>
    (await engine.post('/swarm/unlock', { UnlockKey: text })).status;
  const stateOf = async (host: ClusterHost): Promise<string> => (await host.info()).LocalNodeState;

  async function restart({ engine }: ClusterHost): Promise<void> {
    await engine.kill();
    await engine.startAgain();
  }

  async function update(query: string, change: (spec: Spec) => void = () => undefined): Promise<void> {
    await eventually('an update', async () => {
      const { Version, Spec } = await one!.swarm();
      change(Spec as Spec);
      const answer = await one!.engine.post(`/swarm/update?version=${Version.Index}${query}`, Spec);
      return answer.status === 200 ? true : undefined;
    });
  }

  async function isReady(host: ClusterHost, by: ClusterHost = one!): Promise<void> {
    await by.node(host.name, ({ Status, ManagerStatus }) => {
      return Status.State === 'ready' && ManagerStatus?.Reachability === 'reachable';
    });
  }

  /** Files below its folder of the cluster that have secrets in plain. */
  async function filesWithSecrets(host: ClusterHost): Promise<string> {
    const { Worker, Manager } = (await one!.swarm()).JoinTokens;
    const secrets = ['PRIVATE KEY', key, Worker.split('-').at(-1)!, Manager.split('-').at(-1)!];
    const words = secrets.flatMap((secret) => ['-e', secret]);
    // -z: the zeros at the end of etcd's log are not one line of 64 MB.
    const found = spawnSync('grep', ['-rlazF', ...words, join(host.engine.dataRoot, 'cluster')], { encoding: 'utf8' });
    assert.ok(found.status === 0 || found.status === 1, found.stderr);
    return found.stdout;
  }

  test('no key and no token of them is on their disks, nor in etcd', async () => {
    for (const host of [one!, two!, three!]) assert.equal(await filesWithSecrets(host), '');
  });

  test('a manager is locked under the next daemon, its containers go on, and its key makes it one again', async () => {
    const template = { ContainerSpec: { Image: 'busybox', Command: ['sleep', '100000'] } };
    const Mode = { Replicated: { Replicas: 1 } };
    const Placement = { Constraints: [`node.hostname==${two!.name}`] };
    const body = { Name: 'web', TaskTemplate: { ...template, Placement }, Mode };
    assert.equal((await one!.engine.post('/services/create', body)).status, 201);
    const containers = async (): Promise<string[]> =>
      (await two!.engine.get<{ Id: string }[]>('/containers/json')).body.map(({ Id }) => Id);
    const [before] = await eventually('the task', async () =>
      (await containers()).length === 1 ? await containers() : undefined,
    );

    await restart(two!);

    assert.equal(await stateOf(two!), 'locked');
    assert.deepEqual(await containers(), [before]);
    assert.deepEqual(existsSync(join(two!.engine.directory, 'exec/etcd/peer-key.pem')), false);
    assert.deepEqual([await unlock(two!, 'x'), await unlock(two!, key.replace(/.$/, '!'))], [400, 400]);
    assert.equal(await unlock(two!, 'SWMKEY-1-9FwBm58re4YvwFTTu9JbReluOkJXHMvZizs6NIJygng'), 401);
    assert.equal(await unlock(two!, key), 200);
    assert.equal(await stateOf(two!), 'active');
    await isReady(two!);
    assert.deepEqual([await keyOf(two!), await containers()], [key, [before]]);
    assert.equal(await filesWithSecrets(two!), '');
  });

  test('a manager that is locked during a rotation opens by the old key; afterwards all take the new one alone, and go on with their records', async () => {
    const managers = [one!, two!, three!];
    const old = key;
    const secret = { Name: 'kept', Data: Buffer.from('hidden').toString('base64') };
    assert.equal((await one!.engine.post('/secrets/create', secret)).status, 201);
    await restart(two!);
    await update('&rotateManagerUnlockKey=1');
    key = await keyOf(one!);
    assert.notEqual(key, old);

    assert.deepEqual([await unlock(two!, key), await unlock(two!, old)], [401, 200]);
    await isReady(two!);
    for (const host of managers) {
      await eventually('the new key is known', async () => ((await keyOf(host)) === key ? true : undefined));
    }
    await Promise.all(managers.map(restart));
    assert.deepEqual(await Promise.all(managers.map(stateOf)), ['locked', 'locked', 'locked']);
    const byOld = await Promise.all(managers.map(async (host) => await unlock(host, old)));
    const byNew = await Promise.all(managers.map(async (host) => await unlock(host, key)));

    assert.deepEqual(
      [byOld, byNew],
      [
        [401, 401, 401],
        [200, 200, 200],
      ],
    );
    for (const host of managers) await isReady(host);
    const { body } = await one!.engine.get<{ Spec: { Name: string } }[]>('/secrets');
    assert.deepEqual(
      body.map(({ Spec }) => Spec.Name),
      ['kept'],
    );
    assert.equal(await keyOf(one!), key);
  });

  test('a manager that became a worker is not locked', async () => {
    await one!.updateNode(three!.name, { Role: 'worker' });
    await eventually('a worker', async () => ((await three!.info()).ControlAvailable ? undefined : true));
    const sealed = join(three!.engine.dataRoot, 'cluster/sealed-keys');
    await eventually('its keys are its own', () => !existsSync(sealed));

    await restart(three!);

    assert.equal(await stateOf(three!), 'active');
    await one!.node(three!.name, ({ Status }) => Status.State === 'ready');
  });

  test('without auto-lock managers go on by themselves', async () => {
    await update('', (spec) => (spec.EncryptionConfig.AutoLockManagers = false));
    const sealed = join(two!.engine.dataRoot, 'cluster/sealed-keys');
    await eventually('its keys are its own', () => !existsSync(sealed));

    await restart(two!);

    assert.equal(await stateOf(two!), 'active');
    await isReady(two!);
    assert.equal(await keyOf(two!), '');
  });

  test('auto-lock that is switched on later locks too', async () => {
    await update('', (spec) => (spec.EncryptionConfig.AutoLockManagers = true));
    key = await keyOf(one!);

    await restart(one!);

    assert.equal(await stateOf(one!), 'locked');
    assert.equal((await one!.engine.post('/swarm/leave')).status, 503);
    assert.equal(await unlock(one!, key), 200);
    await isReady(one!);
  });

  test('a manager that is forced to go on alone keeps its seal and the key', async () => {
    await two!.powerOff();

    const forced = await one!.engine.post('/swarm/init', { ListenAddr: `${one!.ip}:2377`, ForceNewCluster: true });

    assert.equal(forced.status, 200);
    assert.equal(await keyOf(one!), key);
    await restart(one!);
    assert.deepEqual([await stateOf(one!), await unlock(one!, key)], ['locked', 200]);
    await isReady(one!);
  });
});
