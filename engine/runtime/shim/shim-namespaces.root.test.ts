import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, existsSync, fstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { OUTPUT, payload, TestBundle } from '@gantry/testing/test-bundle.ts';

import { mountTmpfs, unmount } from '../../host/mounts/mount.ts';
import { newNetns } from '../../host/namespaces.ts';

test("the container's root is mounted where the host does not see it, and goes by itself", async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'echo kept >/file; echo written; sleep 1000'], { overlay: true });
  const socket = await bundle.attach(shim, OUTPUT);
  await shim.start();
  await once(socket.resume(), 'data');

  assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(bundle.overlay.target));
  assert.ok(readFileSync(`/proc/${shim.pid}/mountinfo`, 'utf8').includes(` ${bundle.overlay.target} `));
  assert.ok(!existsSync(join(bundle.overlay.target, 'bin')));

  await shim.signal(9);
  await shim.exited;
  assert.equal(readFileSync(join(bundle.overlay.upper, 'file'), 'utf8'), 'kept\n');
});

test('mounts of another container do not stay busy in the shim', async () => {
  await using bundle = new TestBundle();
  const other = join(bundle.directory, 'writable/other container/merged');
  await (await bundle.shim(['true'], { overlay: true })).end();
  mkdirSync(other, { recursive: true });
  mountTmpfs(other, 1024 * 1024);
  using _other = { [Symbol.dispose]: () => unmount(other) };

  const shim = await bundle.shim(['true'], { overlay: true });

  assert.ok(readFileSync('/proc/self/mountinfo', 'utf8').includes(String.raw`other\040container/merged`));
  assert.ok(!readFileSync(`/proc/${shim.pid}/mountinfo`, 'utf8').includes(String.raw`other\040container`));
});

test('the network namespace that was handed over is the one of the container', async () => {
  await using bundle = new TestBundle();
  const netns = newNetns();
  const { ino } = fstatSync(netns);
  const shim = await bundle.shim(['readlink', '/proc/self/ns/net'], { netns });
  closeSync(netns); // the shim holds it now
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).toString(), `net:[${ino}]\n`);
});
