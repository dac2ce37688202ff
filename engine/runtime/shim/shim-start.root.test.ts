import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { OUTPUT, TestBundle } from '@gantry/testing/test-bundle.ts';

import { StartFailed } from '../start-failure.ts';
import type { Shim } from './shim.ts';

async function failureOf(shim: Shim): Promise<StartFailed> {
  const failure = await shim.start().then(
    () => assert.fail('it started'),
    (error: unknown) => error,
  );
  assert.ok(failure instanceof StartFailed);
  return failure;
}

for (const [name, command, exitCode, words] of [
  ['a missing command is 127', 'nowhere', 127, /exec: "nowhere": executable file not found in \$PATH: unknown$/],
  ['a missing path is 127', '/nowhere/x', 127, /stat \/nowhere\/x: no such file or directory: unknown$/],
  ['a file that is not a program is 126', '/noexec', 126, /exec: "\/noexec": permission denied: unknown$/],
  ['a folder is 126', '/tmp', 126, /exec: "\/tmp": (?:permission denied|is a directory): unknown$/],
] as const) {
  test(`${name}, and nothing is left`, async () => {
    await using bundle = new TestBundle();
    const shim = await bundle.shim([command]);
    const socket = await bundle.attach(shim, OUTPUT);

    const failure = await failureOf(shim);

    assert.equal(failure.exitCode, exitCode);
    assert.match(failure.message, words);
    await shim.gone;
    assert.deepEqual(readdirSync(bundle.state), []);
    assert.ok(!existsSync(join(bundle.folder, 'shim.sock')));
    assert.equal(await text(socket), '', "the runtime's own words are not the container's");
    assert.equal(readFileSync(bundle.logPath, 'utf8'), '');
  });
}

test('an exec of a missing command is 127, as dockerd 28 has it', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['nowhere']);

  const { exitCode, message } = await failureOf(shim);

  assert.equal(exitCode, 127);
  assert.match(message, /^OCI runtime exec failed: exec failed: .*executable file not found in \$PATH: unknown$/);
});

test('an unknown runtime is told', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['true'], { runtime: '/nowhere/runc' });

  const { exitCode, message } = await failureOf(shim);

  assert.match(message, /cannot run the runtime \/nowhere\/runc: No such file or directory/);
  assert.equal(exitCode, 128);
});

test('a runtime that hangs is ended with its helpers', async () => {
  await using bundle = new TestBundle();
  const script = `case "$*" in *delete*) exit 0;; esac; sleep 1000 & echo $! >"${bundle.directory}/helper"; wait`;
  const shim = await bundle.shim(['true'], { runtime: bundle.runtime(script), runtimeSeconds: 1 });

  const { message } = await failureOf(shim);

  assert.match(message, /the runtime did not answer within 1 seconds/);
  await shim.gone;
  const helper = Number(readFileSync(join(bundle.directory, 'helper'), 'utf8'));
  assert.throws(() => process.kill(helper, 0), { code: 'ESRCH' });
});

test('a runtime that is cut off while it writes its log is told as the failure that it is', async () => {
  await using bundle = new TestBundle();
  const script = `case "$*" in *delete*) exit 0;; esac; printf '{"level":"error","msg":"cont' >runtime.log; exit 3`;
  const shim = await bundle.shim(['true'], { runtime: bundle.runtime(script) });

  const { message } = await failureOf(shim);

  assert.match(message, /the runtime ended with code 3/);
});

test('a start that hangs can be ended', async () => {
  await using bundle = new TestBundle();
  const runtime = bundle.runtime('case "$*" in *delete*) exit 0;; esac; exec sleep 1000');
  const shim = await bundle.shim(['true'], { runtime });
  const start = failureOf(shim);

  await shim.end();

  assert.match((await start).message, /the runtime was ended by signal 9/);
});

test('a set-up that the shim cannot do is an error of the spawn', async () => {
  await using bundle = new TestBundle();

  const spawning = bundle.shim(['true'], { log: { attributes: 'x'.repeat(102_401) } });

  await assert.rejects(spawning, /the shim refused: take the log's attributes: Argument list too long/);
});
