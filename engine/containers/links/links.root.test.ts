import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect, Summary } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

suite('links to other containers', { concurrency: false }, () => {
  let engine: TestEngine;
  let db: string;
  before(async () => {
    engine = await TestEngine.start();
    const body = { Hostname: 'dbhost', Env: ['PASS=secret'], ExposedPorts: { '5432/tcp': {} } };
    db = await engine.run(['sleep', '600'], body, 'db');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const linked = (...Links: string[]): Record<string, unknown> => ({ HostConfig: { Links } });

  async function addressOf(ref: string): Promise<string> {
    return (await inspect(ref)).NetworkSettings.IPAddress;
  }

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  async function said(command: readonly string[], body: Record<string, unknown>): Promise<string> {
    const id = await engine.run(command, body);
    await engine.wait(id);
    return (await engine.output(id)).stdout;
  }

  async function executed(id: string, command: readonly string[]): Promise<string> {
    const body = { Cmd: command, AttachStdout: true, Tty: true };
    const { Id } = (await engine.post<{ Id: string }>(`/containers/${id}/exec`, body)).body;
    return (await engine.post(`/exec/${Id}/start`, { Tty: true })).raw.toString().replaceAll('\r', '');
  }

  test('the other one is found by the alias, its hostname and its name', async () => {
    const hosts = await said(['cat', '/etc/hosts'], linked('db:database', 'db'));

    const address = await addressOf(db);
    assert.match(hosts, new RegExp(`^${address}\tdatabase dbhost db\n${address}\tdb dbhost\n`, 'm'));
  });

  test('its ports and variables are told to the container and to execs', async () => {
    const body = { ...linked('db:database'), Env: ['DATABASE_PORT_5432_TCP_PORT=mine'] };
    const id = await engine.run(['sh', '-c', 'env; sleep 60'], body, 'asking');

    const variables = (await executed(id, ['env'])).split('\n');

    const wanted = [
      `DATABASE_PORT=tcp://${await addressOf(db)}:5432`,
      'DATABASE_PORT_5432_TCP_PORT=mine',
      'DATABASE_NAME=/asking/database',
      'DATABASE_ENV_PASS=secret',
    ];
    assert.deepEqual(
      wanted.filter((variable) => !variables.includes(variable)),
      [],
    );
    const told = (await engine.output(id)).stdout.split('\n');
    assert.ok(wanted.every((variable) => told.includes(variable)));
  });

  test('inspect and list show them, by the present names', async () => {
    const id = await engine.create(['true'], linked('db:database', `${db.slice(0, 12)}:other`), 'showing');
    await engine.post('/containers/db/rename?name=db2');
    await engine.post(`/containers/${id}/rename?name=shown`);

    const { HostConfig } = await inspect(id);
    const { body: list } = await engine.get<Summary[]>('/containers/json');
    await engine.post(`/containers/db2/rename?name=db`);

    assert.deepEqual(HostConfig.Links, ['/db2:/shown/database', '/db2:/shown/other']);
    const names = list.find(({ Id }) => Id === db)?.Names;
    assert.equal(names?.[0], '/db2');
    assert.deepEqual(names.slice(-2), ['/shown/database', '/shown/other']);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });

  test('a link can be removed by itself', async () => {
    const id = await engine.create(['true'], linked('db:database', 'db:other'), 'having');

    assert.equal((await engine.delete('/containers/having/database?link=1')).status, 204);

    assert.deepEqual((await inspect(id)).HostConfig.Links, ['/db:/having/other']);
    assert.equal((await engine.delete('/containers/having/other?link=1')).status, 204);
    assert.equal((await inspect(id)).HostConfig.Links, null);
  });

  test('only links are removed', async () => {
    const answers = await Promise.all(
      ['having?link=1', 'nobody?link=1', 'having/none?link=1', 'nobody/none?link=1', 'having/none'].map(
        async (path) => await engine.delete<Message>(`/containers/${path}`),
      ),
    );

    assert.deepEqual(
      answers.map(({ status, body }) => [status, body.message]),
      [
        [500, 'Conflict, cannot remove the default link name of the container'],
        [404, 'No such container: nobody'],
        [404, 'No such container: having/none'],
        [404, 'No such container: nobody'],
        [404, 'No such container: having/none'],
      ],
    );
    assert.equal((await inspect('having')).Name, '/having');
  });

  test('a container that starts again with another address is found again', async () => {
    const other = await engine.run(['sleep', '600'], {}, 'moving');
    const id = await engine.run(['sleep', '600'], linked('moving:it'));
    const before = await addressOf(other);
    await engine.post(`/containers/${other}/stop?t=0`);
    await engine.run(['sleep', '600'], {}, 'taking-its-place');

    await engine.post(`/containers/${other}/start`);

    const after = await addressOf(other);
    assert.notEqual(after, before);
    assert.match(
      await executed(id, ['cat', '/etc/hosts']),
      new RegExp(`^${after}\tit ${other.slice(0, 12)} moving$`, 'm'),
    );
  });

  test('the other one has to run, and to be in the default network', async () => {
    await engine.create(['true'], {}, 'stopped');
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } }, 'alone');
    const refusals = [];
    for (const name of ['stopped', 'alone']) {
      const id = await engine.create(['true'], linked(`${name}:it`), `to-${name}`);
      const { status, body } = await engine.post<Message>(`/containers/${id}/start`);
      refusals.push([status, body.message]);
    }

    assert.deepEqual(refusals, [
      [500, 'Cannot link to a non running container: /stopped AS /to-stopped/it'],
      [500, 'Cannot link to /alone, as it does not belong to the default network'],
    ]);
  });

  for (const [link, message] of [
    ['', 'empty string specified for links'],
    ['nobody:x', 'could not get container for nobody: No such container: nobody'],
    ['db:a:b', 'bad format for links: db:a:b'],
    ['db:', 'invalid alias of a link: db:'],
    ['db:a b', 'invalid alias of a link: db:a b'],
    ['db:a\n1.2.3.4 bank', 'invalid alias of a link: db:a\n1.2.3.4 bank'],
  ] as const) {
    test(`${JSON.stringify(link)} is refused`, async () => {
      const answer = await engine.post<Message>('/containers/create', {
        Image: 'busybox',
        Cmd: ['true'],
        ...linked(link),
      });

      assert.deepEqual([answer.status, answer.body.message], [400, message]);
    });
  }

  test('a container that uses the host’s network cannot be linked to', async () => {
    await engine.create(['true'], { HostConfig: { NetworkMode: 'host' } }, 'hosted');

    const answer = await engine.post('/containers/create', { Image: 'busybox', Cmd: ['true'], ...linked('hosted') });

    assert.equal(answer.status, 400);
  });

  test('a removed container takes its links with it', async () => {
    await engine.create(['true'], {}, 'going');
    const id = await engine.create(['true'], linked('going:it'));

    await engine.delete('/containers/going');

    assert.equal((await inspect(id)).HostConfig.Links, null);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    await engine.wait(id);
  });
});
