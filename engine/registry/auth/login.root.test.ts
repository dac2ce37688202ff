import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

const ALICE = { username: 'alice', password: 'secret-of-alice' };

suite('POST /auth', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: ALICE.password } });
    await registries.proxy(5003, 5000, { user: 'alice', password: ALICE.password });
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  const cases: [string, object][] = [
    ['the right password', { ...ALICE, serveraddress: '127.0.0.1:5002' }],
    ['an address with a scheme and a path', { ...ALICE, serveraddress: 'http://127.0.0.1:5002/v1/' }],
    ['a wrong password', { ...ALICE, password: 'wrong-password', serveraddress: '127.0.0.1:5002' }],
    ['no password', { serveraddress: '127.0.0.1:5002' }],
    ['a registry that wants none', { ...ALICE, serveraddress: '127.0.0.1:5000' }],
    ['nobody there', { ...ALICE, serveraddress: '127.0.0.1:5999' }],
    ['a password for a token', { ...ALICE, serveraddress: '127.0.0.1:5003' }],
    [
      'a token in place of the password',
      { username: 'alice', identitytoken: 'refresh-alice', serveraddress: '127.0.0.1:5003' },
    ],
  ];
  for (const [what, body] of cases) {
    test(`${what} is answered as by dockerd`, async () => {
      const [ours, theirs] = [await engine.post('/auth', body), await dockerd.api.post('/auth', body)];

      assert.equal(ours.status, theirs.status, ours.raw.toString());
      assert.deepEqual(ours.body, theirs.body);
    });
  }

  test('a wrong password at the token server is the specification’s 500, and told without secrets', async () => {
    const answer = await engine.post<{ message: string }>('/auth', {
      ...ALICE,
      password: 'wrong-password',
      serveraddress: '127.0.0.1:5003',
    });

    assert.equal(answer.status, 500);
    assert.match(answer.body.message, /unauthorized: incorrect username or password$/);
    assert.doesNotMatch(answer.raw.toString() + engine.log, /wrong-password|secret-of-alice/);
  });
});
