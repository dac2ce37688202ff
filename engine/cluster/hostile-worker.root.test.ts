import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { DESCRIPTION, RawSession } from '@gantry/testing/cluster/raw-session.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';

const ID = 'e'.repeat(64);
const NOW = '2026-01-01T00:00:00Z';
const container = (over: object): object => ({
  say: 'attachments',
  wanted: [{ id: ID, network: 'open', name: 'box', aliases: [], ...over }],
});
const hello = (over: object, address = '10.77.0.2'): object => ({
  say: 'hello',
  description: { ...DESCRIPTION, ...over },
  address,
});
const report = (over: object): object => ({
  say: 'report',
  number: 1,
  tasks: [{ id: 't'.repeat(25), status: { state: 'running', timestamp: NOW, message: '', ...over } }],
});

/** Messages that end the session of their node. */
const BROKEN: readonly object[] = [
  hello({}, 'zzz'),
  hello({}, ''),
  hello({}, '10.77.0.2\nquit'),
  hello({}, '0.0.0.0'),
  hello({}, '::'),
  hello({}, '224.0.0.1'),
  hello({}, '255.255.255.255'),
  hello({}, 'ff02::1'),
  hello({ hostname: 'x'.repeat(5000) }),
  hello({ resources: { nanoCpus: -1, memoryBytes: 1 } }),
  report({ startedAt: 'never' }),
  report({ timestamp: '' }),
  report({ state: 'odd' }),
  report({ container: { id: 'c', pid: -1, exitCode: 0 } }),
  report({ ports: [{ protocol: 'tcp', targetPort: 80, publishedPort: 70_000 }] }),
  container({ id: '../../etc' }),
  container({ name: 'x'.repeat(5000) }),
  container({ network: 'x'.repeat(5000) }),
  { say: 'withdrawing', number: 1, network: 'open' },
  { say: 'report', number: null, tasks: null },
  { say: 'wantFile', task: 'x'.repeat(1000), kind: 'secret', id: ID },
  { say: 'synced', number: {} },
  { say: 'constructor' },
  { no: 'word' },
  [],
];

/** Five thousand containers in a network that does not exist. */
const REFUSED = {
  say: 'attachments',
  wanted: Array.from({ length: 5000 }, (_, index) => ({ id: `${index}`, network: 'x', name: 'x', aliases: [] })),
};
const MAX_GROWTH_MB = 64;

/** Addresses that no other machine reaches, or the kernel takes for no tunnel from here. */
const IMPOSSIBLE = ['::1', 'fe80::1', '2001:db8::1', '127.0.0.1', '10.77.0.1'];

suite('a worker that breaks the rules', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let [manager, worker]: ClusterHost[] = [];
  /** Id of the network `open`. */
  let open = '';
  before(async () => {
    hosts = await ClusterHosts.start(2, { image: true });
    [manager, worker] = hosts.hosts;
    await manager!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 100e9 } } });
    await worker!.join(manager!, 'Worker');
    await manager!.node('host2', ({ Status }) => Status.State === 'ready');
    await worker!.engine.kill();
    const body = { Name: 'open', Driver: 'overlay', Attachable: true };
    const made = await manager!.engine.post<{ Id: string }>('/networks/create', body);
    assert.equal(made.status, 201);
    open = made.body.Id;
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  async function output(ref: string, ...Cmd: string[]): Promise<string> {
    const body = { Cmd, AttachStdout: true, AttachStderr: true, Tty: true };
    const { Id } = (await manager!.engine.post<{ Id: string }>(`/containers/${ref}/exec`, body)).body;
    return (await manager!.engine.post(`/exec/${Id}/start`, { Tty: true })).raw.toString();
  }

  test('a name of several lines is refused, and adds no name to another network', async () => {
    const { engine } = manager!;
    const { Id } = (await engine.post<{ Id: string }>('/networks/create', { Name: 'private' })).body;
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'private' } }, 'inside');
    await using session = await RawSession.open(worker!, manager!);
    await session.hello();

    session.say(container({ name: `evil\nname ${Id} zz 6.6.6.6 - bank` }));

    const { reason } = await session.heard(({ say }) => say === 'unattached');
    assert.match(String(reason), /^invalid container name/);
    assert.doesNotMatch(await output('inside', 'nslookup', 'bank'), /6\.6\.6\.6/);
    assert.match(await output('inside', 'nslookup', 'inside'), /Address.*172\./);
    await engine.delete('/containers/inside?force=1');
    await engine.delete('/networks/private');
  });

  test('aliases of several lines, of 100 KB and of commands are left out, and the names of others stay', async () => {
    const { engine } = manager!;
    const { Id } = (await engine.post<{ Id: string }>('/networks/create', { Name: 'private' })).body;
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'private' } }, 'inside');
    await using session = await RawSession.open(worker!, manager!);
    await session.hello();
    const wicked = [`www\nname ${Id} zz 6.6.6.6 - bank`, 'evil\nquit', 'x'.repeat(100_000), 'a b', '%0Aquit', ''];

    session.say(container({ name: 'far', aliases: [...wicked, 'fine'] }));

    await session.heard(({ say }) => say === 'network');
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'open' } }, 'beside');
    await eventually('the alias that is one', async () => {
      return /Address.*10\.0\./.test(await output('beside', 'nslookup', 'fine')) || undefined;
    });
    assert.doesNotMatch(await output('inside', 'nslookup', 'bank'), /6\.6\.6\.6/);
    assert.match(await output('inside', 'nslookup', 'inside'), /Address.*172\./);
    for (const name of ['inside', 'beside']) await engine.delete(`/containers/${name}?force=1`);
    await engine.delete('/networks/private');
  });

  test('a message against the schema ends the session of its node, and changes nothing', async () => {
    const before = await manager!.node('host2');

    for (const message of BROKEN) {
      await using session = await RawSession.open(worker!, manager!);
      session.say(message);
      await session.over();
    }

    const now = await manager!.node('host2');
    assert.deepEqual([now.Status.Addr, now.Description], [before.Status.Addr, before.Description]);
    assert.match(manager!.engine.log, /in the message report \/tasks\/0\/status\/startedAt must be a time in RFC 3339/);
    await manager!.updateNode('host2', { Labels: { still: 'written' } });
  });

  test('a node at an impossible address costs no other node its network', async () => {
    for (const [index, address] of IMPOSSIBLE.entries()) {
      await using session = await RawSession.open(worker!, manager!);
      await session.hello(address);
      session.say(container({ id: `${index}`.repeat(64), name: `at${index}` }));
      await session.heard(({ say }) => say === 'network');

      const { engine } = manager!;
      const id = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'open' } }, `inside${index}`);
      await engine.delete(`/containers/${id}?force=1`);
    }
  });

  test('a node neither reports on tasks of others nor gets their secrets', async () => {
    const newer = new Api(manager!.engine.socketPath, '/v1.41');
    const made = await newer.post<{ ID: string }>('/secrets/create', { Name: 'hidden', Data: 'aGlkZGVu' });
    const SecretID = made.body.ID;
    const File = { Name: 'hidden', UID: '0', GID: '0', Mode: 0o400 };
    const services = new Services(manager!);
    const secrets = { Secrets: [{ SecretID, SecretName: 'hidden', File }] };
    const Constraints = ['node.hostname == host1'];
    await services.create('owner', secrets, { TaskTemplate: { Placement: { Constraints } } });
    const { ID } = await services.task('owner', ({ Status }) => Status.State === 'running');
    const unknown = 'u'.repeat(25);
    await using session = await RawSession.open(worker!, manager!);
    await session.hello();

    const status = { state: 'failed', timestamp: NOW, message: 'not mine' };
    session.say({ say: 'report', number: 7, tasks: [ID, unknown].map((id) => ({ id, status })) });
    for (const [task, id] of [[ID, SecretID] as const, [unknown, SecretID] as const, [ID, unknown] as const])
      session.say({ say: 'wantFile', task, kind: 'secret', id });

    await session.heard(({ say, number }) => say === 'ack' && number === 7);
    for (const [task, id] of [[ID, SecretID] as const, [unknown, SecretID] as const, [ID, unknown] as const]) {
      const file = await session.heard((said) => said.say === 'file' && said.task === task && said.id === id);
      assert.deepEqual([file.data, file.refusal], [undefined, `secret ${id} not found`]);
    }
    const [running] = await services.running('owner', 1);
    assert.deepEqual([running!.ID, running!.Status.Message === 'not mine'], [ID, false]);
    await services.remove('owner');
    assert.equal((await newer.delete(`/secrets/${SecretID}`)).status, 204);
  });

  test('long texts are shortened, large records refused, and the leader goes on', async () => {
    const services = new Services(manager!);
    const Constraints = ['node.hostname == host2'];
    await using session = await RawSession.open(worker!, manager!);
    await session.hello();
    await services.create('bad', {}, { TaskTemplate: { Placement: { Constraints } } });
    const { tasks } = await session.heard(({ say, tasks }) => say === 'tasks' && (tasks as unknown[]).length > 0);
    const [{ assignment }] = tasks as [{ assignment: { id: string } }];
    const status = { state: 'failed', timestamp: NOW, message: 'é'.repeat(100_000), error: 'x'.repeat(1_500_000) };

    session.say({ say: 'report', number: 1, tasks: [{ id: assignment.id, status }] });

    const { Status } = await services.task('bad', ({ ID, Status }) => {
      return ID === assignment.id && Status.State === 'failed';
    });
    assert.equal(Status.Err, `${'x'.repeat(4092)} ...`);
    assert.equal(Status.Message, `${'é'.repeat(2046)} ...`);
    session.say(hello({ engine: { version: '1', labels: { large: 'x'.repeat(3_000_000) }, plugins: [] } }));
    await session.over();
    await manager!.updateNode('host2', { Labels: { written: 'at once' } });
    assert.equal(manager!.engine.log.match(/this manager leads the cluster/g)?.length, 1);
    await services.remove('bad');
  });

  for (const [name, count, message] of [
    ['beats', 30_000, () => ({ say: 'beat' })],
    ['large reports', 40, () => report({ error: 'x'.repeat(1_000_000) })],
    ['refused containers', 40, () => REFUSED],
    ['questions', 40_000, (network: string) => ({ say: 'withdrawing', number: 1, network })],
  ] as const) {
    test(`${count} ${name} of a node that does not read cost the leader little`, async () => {
      const { pid } = manager!.engine;
      await assertSmallGrowth(pid, MAX_GROWTH_MB, async () => {
        await using other = await RawSession.open(worker!, manager!);
        other.say({ say: 'another reason, as one in a row is logged once' });
        await other.over();
        const { log } = manager!.engine;
        await using session = await RawSession.open(worker!, manager!, { reads: false });
        session.say(hello({ hostname: 'host2' }));

        session.send(`${JSON.stringify(message(open))}\n`.repeat(count));
        session.say({ say: `over: ${name}` }); // where nothing before ends the session

        await eventually(`the end of the session for ${name}`, async () => {
          const reasons = new RegExp(`it does not read what it is sent|it does not wait for answers|over: ${name}`);
          return await Promise.resolve(reasons.test(manager!.engine.log.slice(log.length)) || undefined);
        });
      });
      await manager!.updateNode('host2', { Labels: { after: name } });
    });
  }
});
