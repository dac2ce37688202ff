import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { TestPlugin } from '@gantry/testing/plugin.ts';
import { Type } from 'typebox';

import { systemClock } from '../lib/clock.ts';
import { findPlugin, pluginNames } from './find.ts';
import { Plugins } from './plugins.ts';

const Said = Type.Object({ said: Type.String() });
const folder = (): ReturnType<typeof mkdtempDisposableSync> => mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));

test('plugins are found as files of every kind, sockets first, also in a folder of their name', async () => {
  using first = folder();
  using second = folder();
  const folders = [first.path, second.path];
  await using _plugin = await TestPlugin.start(join(second.path, 'a.sock'), [], {});
  await using _inside = await TestPlugin.start(join(first.path, 'b', 'b.sock'), [], {});
  writeFileSync(join(first.path, 'a.spec'), 'tcp://127.0.0.1:1');
  writeFileSync(join(first.path, 'c.spec'), ' unix:///somewhere/c.sock\n');
  writeFileSync(join(second.path, 'd.json'), '{"Addr":"https://[::1]:8443","TLSConfig":{"InsecureSkipVerify":true}}');
  writeFileSync(join(first.path, 'e.sock'), 'no socket');
  mkdirSync(join(first.path, 'f'));

  assert.deepEqual(findPlugin(folders, 'a'), { kind: 'unix', socketPath: join(second.path, 'a.sock') });
  assert.deepEqual(findPlugin(folders, 'b'), { kind: 'unix', socketPath: join(first.path, 'b/b.sock') });
  assert.deepEqual(findPlugin(folders, 'c'), { kind: 'unix', socketPath: '/somewhere/c.sock' });
  const tls = { InsecureSkipVerify: true };
  assert.deepEqual(findPlugin(folders, 'd'), { kind: 'tcp', host: '::1', port: 8443, tls });
  for (const name of ['e', 'f', 'g', '../a', '', 'x'.repeat(250), 'x'.repeat(5000)])
    assert.equal(findPlugin(folders, name), undefined);
  assert.deepEqual(pluginNames([...folders, '/nowhere']), ['a', 'b', 'c', 'd', 'e']);
});

for (const [file, text] of [
  ['x.spec', 'somewhere'],
  ['x.spec', 'tcp://host'],
  ['x.json', '{'],
  ['x.json', '{"Name":"x"}'],
] as const) {
  test(`a file ${file} with ${text} is refused with its path`, () => {
    using place = folder();
    writeFileSync(join(place.path, file), text);

    assert.throws(() => findPlugin([place.path], 'x'), { kind: 'failed', message: new RegExp(place.path) });
  });
}

test('the handshake is made once, and a call brings the answer or the words of the refusal', async () => {
  using place = folder();
  await using plugin = await TestPlugin.start(join(place.path, 'a.sock'), ['VolumeDriver', 'authz'], {
    'Test.Say': ({ what = '' }) => (what === 'no' ? { Err: 'not that' } : { said: what }),
    'Test.Other': () => ({ something: 1 }),
  });
  const plugins = new Plugins(systemClock, [place.path]);

  const [a, again] = await Promise.all([plugins.get('a', 'VolumeDriver'), plugins.get('a', 'authz')]);

  assert.equal(a, again);
  assert.deepEqual(await a.call('Test.Say', { what: 'yes' }, Said), { said: 'yes' });
  await assert.rejects(a.call('Test.Say', { what: 'no' }, Said), { kind: 'failed', message: 'Test.Say: not that' });
  await assert.rejects(a.call('Test.Other', {}, Said), { kind: 'failed', message: /answered against its protocol/ });
  await assert.rejects(a.call('Test.Unknown', {}, Said), { kind: 'failed' });
  await assert.rejects(plugins.get('a', 'NetworkDriver'), { kind: 'notFound', message: /does not implement/ });
  await assert.rejects(plugins.get('b', 'VolumeDriver'), { kind: 'notFound', message: 'plugin "b" not found' });
  assert.equal(plugin.methods().filter((method) => method === 'Plugin.Activate').length, 1);
});

test('a call waits for a late plugin, and gives up a missing one', async () => {
  using place = folder();
  const socketPath = join(place.path, 'late.sock');
  writeFileSync(join(place.path, 'late.spec'), `unix://${socketPath}`);
  const plugins = new Plugins(systemClock, [place.path]);

  await assert.rejects(plugins.get('late', 'authz', { patienceMs: 0 }), { kind: 'failed', message: /does not answer/ });
  const waiting = plugins.get('late', 'authz', { patienceMs: 60_000 });
  await using _plugin = await TestPlugin.start(socketPath, ['authz'], {});

  assert.equal((await waiting).name, 'late');
});

test('one that accepts and says nothing is given up, and may answer the next time', async () => {
  using place = folder();
  let isDeaf = true;
  await using server = createServer((_request, response) => {
    if (!isDeaf) response.end('{"Implements":["authz"]}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  writeFileSync(join(place.path, 'deaf.spec'), `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const plugins = new Plugins(systemClock, [place.path]);

  await assert.rejects(plugins.get('deaf', 'authz', { timeoutMs: 50 }), { message: /no answer within 0.05 seconds/ });
  isDeaf = false;

  assert.deepEqual((await plugins.get('deaf', 'authz')).implements, ['authz']);
  server.closeAllConnections();
});
