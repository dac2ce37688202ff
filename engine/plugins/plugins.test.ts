import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

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
  await assert.rejects(plugins.get('b', 'VolumeDriver', { patienceMs: 0 }), {
    kind: 'notFound',
    message: 'plugin "b" not found',
  });
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

test('a plugin without an address is waited for, also while its file is being written', async () => {
  using place = folder();
  const plugins = new Plugins(systemClock, [place.path]);

  const waiting = Promise.all([plugins.get('late', 'authz'), plugins.appears('half')]);
  writeFileSync(join(place.path, 'half.json'), '{"Addr":"tcp://127');
  await using _plugin = await TestPlugin.start(join(place.path, 'late.sock'), ['authz'], {});
  await setTimeout(150); // the first look has found neither
  writeFileSync(join(place.path, 'half.json'), '{"Addr":"tcp://127.0.0.1:1"}');

  const [late, half] = await waiting;
  assert.deepEqual([late.name, half], ['late', true]);
  assert.deepEqual([await plugins.appears('nobody', 200), await plugins.appears('../nobody')], [false, false]);
});

const Answer = Type.Object({
  Mountpoint: Type.Optional(Type.String()),
  Volume: Type.Optional(Type.Object({ Name: Type.Optional(Type.String()) })),
  Routes: Type.Optional(Type.Array(Type.Object({ NextHop: Type.Optional(Type.String()) }))),
});
const readable: [text: string, expected: object][] = [
  ['', {}],
  [' \n', {}],
  ['null', {}],
  ['{}', {}],
  ['{"Err":null,"Error":null}', {}],
  ['{"err":"","MOUNTPOINT":"/a"}', { Mountpoint: '/a' }],
  ['{"mountpoint":"/a","Mountpoint":"/b"}', { Mountpoint: '/b' }],
  ['{"Mountpoint":null,"Volume":null}', {}],
  ['{"volume":{"name":"a","Status":null}}', { Volume: { Name: 'a' } }],
  ['{"Volume":{"Name":null}}', { Volume: {} }],
  ['{"Routes":[{"nexthop":"10.0.0.1"},{"NextHop":null}]}', { Routes: [{ NextHop: '10.0.0.1' }, {}] }],
  ['{"__proto__":{"Mountpoint":"/a"},"constructor":1}', {}],
];
const unreadable = ['ok', '[]', 'true', '7', '"x"', '{"Mountpoint":5}', '{"Err":5}', '{"Volume":[]}', '{"Volume":"a"}'];

test('answers are read as docker reads them', async () => {
  using place = folder();
  let text = '';
  await using _plugin = await TestPlugin.start(join(place.path, 'a.sock'), ['authz'], { 'Test.Say': () => text });
  const plugin = await new Plugins(systemClock, [place.path]).get('a', 'authz');

  for (const [said, expected] of readable) {
    text = said;
    assert.deepEqual(await plugin.call('Test.Say', {}, Answer), expected, said);
  }
  for (const said of unreadable) {
    text = said;
    await assert.rejects(plugin.call('Test.Say', {}, Answer), { how: 'garbled' }, said);
  }
  for (const said of ['{"Err":"no"}', '{"err":"no"}', '{"Error":"no"}', '{"ERROR":"no","Err":null}']) {
    text = said;
    await assert.rejects(plugin.call('Test.Say', {}, Answer), { how: 'refused', message: 'no' }, said);
  }
  await assert.rejects(plugin.call('Test.Other', {}, Answer), { message: 'Test.Other: status 404', status: 404 });
});

for (const kinds of ['', 'null', '{}', '{"Implements":null}', '{"Implements":["other"]}']) {
  test(`a plugin with the handshake ${JSON.stringify(kinds)} implements none of the kinds`, async () => {
    using place = folder();
    await using server = createServer((_request, response) => response.end(kinds)).listen(join(place.path, 'a.sock'));
    await once(server, 'listening');

    await assert.rejects(new Plugins(systemClock, [place.path]).get('a', 'authz'), {
      kind: 'notFound',
      message: 'plugin "a" does not implement authz',
    });
    server.closeAllConnections();
  });
}

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
