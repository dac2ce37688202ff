import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

type Volume = {
  Name: string;
  Driver: string;
  Mountpoint: string;
  Labels: Record<string, string> | null;
  Scope: string;
};
type Volumes = { Volumes: Volume[] };
type Message = { message: string };

suite('volumes', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function names(filters: object): Promise<string[]> {
    const { body } = await engine.get<Volumes>(`/volumes?filters=${encodeURIComponent(JSON.stringify(filters))}`);
    return body.Volumes.map(({ Name }) => Name).toSorted();
  }

  test('a volume is made, found and removed with its folder', async () => {
    const made = await engine.post<Volume>('/volumes/create', { Name: 'made', Labels: { a: 'b' } });

    const found = await engine.get<Volume>('/volumes/made');
    assert.deepEqual([made.status, found.status], [201, 200]);
    assert.deepEqual(found.body, made.body);
    assert.deepEqual([found.body.Driver, found.body.Scope, found.body.Labels], ['local', 'local', { a: 'b' }]);
    assert.ok(existsSync(found.body.Mountpoint));
    assert.equal((await engine.delete('/volumes/made')).status, 204);
    assert.equal(existsSync(found.body.Mountpoint), false);
    assert.equal((await engine.get('/volumes/made')).status, 404);
  });

  test('an existing name gives the existing volume', async () => {
    const [first, second] = [
      await engine.post<Volume>('/volumes/create', { Name: 'twice', Labels: { first: '1' } }),
      await engine.post<Volume>('/volumes/create', { Name: 'twice' }),
    ];

    assert.deepEqual(second.body, first.body);
  });

  test('a volume without a name gets one, and outlives the daemon', async () => {
    const { body } = await engine.post<Volume>('/volumes/create', {});

    assert.match(body.Name, /^[0-9a-f]{64}$/);
    await engine.kill('SIGKILL');
    await engine.startAgain();
    assert.equal((await engine.get(`/volumes/${body.Name}`)).status, 200);
  });

  for (const [status, body] of [
    [400, { Name: 'a/b' }],
    [400, { Name: '../up' }],
    [400, { Name: 'x' }],
    [400, { Name: 'v'.repeat(256) }],
    [500, { Name: 'ok', Driver: 'nfs' }],
    [400, { Name: 'ok', DriverOpts: { type: 'tmpfs' } }],
  ] as const) {
    test(`${JSON.stringify(body).slice(0, 50)} is refused`, async () => {
      const answer = await engine.post<Message>('/volumes/create', body);

      assert.equal(answer.status, status);
      assert.notEqual(answer.body.message, '');
    });
  }

  test('a volume that a container has is not removed', async () => {
    const id = await engine.create(['true'], { HostConfig: { Binds: ['busy:/x'] } });

    const refused = await engine.delete<Message>('/volumes/busy');

    assert.equal(refused.status, 409);
    assert.equal(refused.body.message, `remove busy: volume is in use - [${id}]`);
    await engine.delete(`/containers/${id}?v=1`);
    assert.equal((await engine.delete('/volumes/busy')).status, 204);
  });

  test('an unknown volume is told', async () => {
    const answer = await engine.delete<Message>('/volumes/nowhere');

    assert.deepEqual([answer.status, answer.body.message], [404, 'get nowhere: no such volume']);
  });

  test('filters choose by name, use and driver', async () => {
    await engine.post('/volumes/create', { Name: 'lonely-one' });
    await engine.create(['true'], { HostConfig: { Binds: ['used-one:/x'] } });

    assert.deepEqual(await names({ name: ['-one'] }), ['lonely-one', 'used-one']);
    assert.deepEqual(await names({ name: ['-one'], dangling: ['true'] }), ['lonely-one']);
    assert.deepEqual(await names({ name: { '-one': true }, dangling: { 0: true } }), ['used-one']);
    assert.deepEqual(await names({ name: ['-one'], driver: ['loc'] }), ['lonely-one', 'used-one']);
    assert.deepEqual(await names({ driver: ['nfs'] }), []);
    assert.deepEqual(await names({ name: ['^used-one$'] }), ['used-one']);
    assert.deepEqual(await names({ name: ['y.one$', '('] }), ['lonely-one']);
    assert.deepEqual(await names({ name: ['-one'], dangling: ['true', 'false'] }), ['lonely-one']);
  });
});
