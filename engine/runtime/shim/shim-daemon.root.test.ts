import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { spawnWithControl, TestBundle } from '@gantry/testing/test-bundle.ts';

import { Shim, ShimLost } from './shim.ts';

test('a new daemon finds the shim again, commands it, and learns of the exit', async () => {
  await using bundle = new TestBundle();
  const told = await bundle.orphan(['sleep', '1000']);

  const shim = await bundle.reconnect();

  assert.ok(shim !== undefined);
  assert.equal(shim.phase, 'started');
  const { pid, startedAt } = await shim.started;
  assert.match(told, new RegExp(`^started ${pid} ${startedAt.epochNanoseconds}$`, 'm'));
  await shim.signal(9);
  assert.equal((await shim.exited).exitCode, 137);
});

test('an exit while no daemon is there leaves a status, and nothing else', async () => {
  await using bundle = new TestBundle();
  const told = await bundle.orphan(['sleep', '1000']);
  const pid = Number(/^started (\d+)/m.exec(told)?.[1]);
  const watcher = connect(join(bundle.folder, 'shim.sock')); // sends nothing; the shim does not wait for it
  await once(watcher, 'connect');

  process.kill(pid, 'SIGTERM');
  process.kill(pid, 'SIGKILL');
  await text(watcher);

  assert.equal(await Shim.reconnect(bundle.folder), undefined);
  assert.equal(Shim.readStatus(bundle.folder)?.exitCode, 137);
  assert.deepEqual(readdirSync(bundle.state), []);
  assert.ok(!existsSync(`/sys/fs/cgroup/memory/gantry-test/${bundle.id}`));
});

test('a shim leaves when its daemon dies before the start', async () => {
  await using bundle = new TestBundle();
  const { control, ended } = spawnWithControl(bundle.options());
  await once(control, 'data');

  control.destroy();

  assert.deepEqual(await ended, [0, null]);
  assert.deepEqual(readdirSync(bundle.folder), ['rootfs']);
});

test('a shim that is ended before the start leaves nothing in its folder', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['true'], { tty: true });

  await shim.end();

  assert.ok(!existsSync(join(bundle.folder, 'shim.sock')));
  await assert.rejects(shim.exited, ShimLost);
});

test('a shim that is killed is told as lost', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  await shim.start();

  process.kill(shim.pid, 'SIGKILL');

  await assert.rejects(shim.exited, ShimLost);
  assert.ok(shim.wasLost);
});

test('the signals that end a daemon do not end the shim', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  await shim.start();

  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.kill(shim.pid, name);

  await shim.signal(9);
  assert.equal((await shim.exited).exitCode, 137);
});

for (const [what, said, answered] of [
  ['another program', 'GET / HTTP/1.1', 'refused this is no handshake'],
  ['an older daemon', 'GANTRY 0 control', 'refused this shim speaks no version below 1'],
  ['an unknown kind', 'GANTRY 1 other', 'refused there is no such kind of connection'],
] as const) {
  test(`${what} is refused with the reason`, async () => {
    await using bundle = new TestBundle();
    await bundle.shim(['true']);
    const socket = connect(join(bundle.folder, 'shim.sock'));

    socket.write(`${said}\n`);

    assert.equal(await text(socket), `${answered}\n`);
  });
}

test('a newer daemon is answered with the version that this shim speaks', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['true']);
  const socket = connect(join(bundle.folder, 'shim.sock'));

  socket.write('GANTRY 7 control\n');

  const expected = `ok 1 ${shim.pid}\nwaiting\n`;
  let answer = '';
  while (answer.length < expected.length) answer += String(((await once(socket, 'data')) as [Buffer])[0]);
  assert.equal(answer, expected);
  socket.destroy();
});

test('a shim of a version that this daemon does not speak is told, and left as it is', async () => {
  await using bundle = new TestBundle();
  mkdirSync(bundle.folder);
  await using server = createServer((socket) => socket.resume().end('ok 9 1234\n')).listen(
    join(bundle.folder, 'shim.sock'),
  );
  await once(server, 'listening');

  await assert.rejects(Shim.reconnect(bundle.folder), {
    message: 'the shim 1234 speaks version 9 of its protocol, this daemon 1',
  });
});
