import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { busyboxArchive, busyboxLayer } from '@gantry/testing/busybox-image.ts';
import { gantry as runLine, ownClient, said as saidBy, type Outcome } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start({ image: false });
});
after(async () => await engine[Symbol.asyncDispose]());

async function gantry(words: readonly string[], stdin?: string): Promise<Outcome> {
  return await runLine(engine, words, stdin === undefined ? {} : { stdin });
}

const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);

test('load, import, images and rmi', async () => {
  const archive = join(engine.directory, 'busybox.tar');
  const layer = join(engine.directory, 'root.tar');
  await writeFile(archive, await busyboxArchive());
  await writeFile(layer, busyboxLayer());

  assert.match(await said('load', '-i', archive), /Loaded image: busybox:latest/);
  assert.match(await said('import', '-c', 'CMD ["echo", "imported"]', layer, 'mine:1'), /^sha256:/);
  assert.match(await said('images'), /^REPOSITORY +TAG +IMAGE ID[^]*mine +1 /);
  assert.equal(await said('run', '--rm', 'mine:1'), 'imported');
  assert.match(await said('rmi', 'mine:1'), /Untagged: mine:1/);
});

for (const [what, words, code] of [
  ['run ends with the code of the container', ['sh', '-c', 'exit 3'], 3],
  ['a missing program is 127', ['/nowhere'], 127],
  ['a folder is no program: 126', ['/bin'], 126],
] as const) {
  test(what, async () => {
    assert.equal((await gantry(['run', '--rm', 'busybox', ...words])).code, code);
  });
}

test('a refusal of the engine is 125, and so is an unknown flag', async () => {
  assert.equal((await gantry(['run', '--rm', '-m', '1k', 'busybox', 'true'])).code, 125);
  assert.equal((await gantry(['run', '--nonsense', 'busybox'])).code, 125);
});

test('both output streams arrive where they belong', async () => {
  const { stdout, stderr } = await gantry(['run', '--rm', 'busybox', 'sh', '-c', 'echo out; echo err >&2']);

  assert.deepEqual({ stdout, stderr }, { stdout: 'out\n', stderr: 'err\n' });
});

test('run -i passes stdin on to its end', async () => {
  assert.equal((await gantry(['run', '--rm', '-i', 'busybox', 'cat'], 'through\n')).stdout, 'through\n');
});

test('environment, volume, memory, network and name are the container’s', async () => {
  const script =
    'echo $A; cat /v/f; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; ls /sys/class/net';
  await writeFile(join(engine.directory, 'f'), 'bound\n');

  const output = await said(
    ...[
      'run',
      '--rm',
      '--name',
      'named',
      '-e',
      'A=1',
      '-v',
      `${engine.directory}:/v`,
      '-m',
      '32m',
      '--network',
      'none',
    ],
    ...['busybox', 'sh', '-c', script],
  );

  assert.equal(output, `1\nbound\n${32 * 1024 * 1024}\nlo`);
});

test('a life: run -d, ps, logs, exec, inspect, stop, rm', async () => {
  const id = await said(
    'run',
    '-d',
    '--name',
    'life',
    '-p',
    '127.0.0.1::80',
    'busybox',
    'sh',
    '-c',
    'echo up; exec sleep 1000',
  );

  assert.match(
    await said('ps'),
    new RegExp(`^CONTAINER ID[^]*${id.slice(0, 12)} +busybox .*127.0.0.1:\\d+->80/tcp +life`),
  );
  assert.equal(await said('logs', 'life'), 'up');
  assert.equal((await gantry(['exec', 'life', 'sh', '-c', 'exit 4'])).code, 4);
  assert.equal((JSON.parse(await said('inspect', 'life')) as { Id: string }[])[0]!.Id, id);
  assert.equal(await said('stop', '-t', '0', 'life'), 'life');
  assert.equal(await said('rm', 'life'), 'life');
  assert.equal((await gantry(['rm', 'life'])).code, 1);
});

test('a terminal is raw while the session lasts, and restored after it', async () => {
  const line = `stty rows 33 cols 101; ${process.execPath} ${ownClient} run --rm -it busybox sh -c 'until stty size 2>&1 | grep 33; do :; done'; stty -a`;
  const { stdout } = await execute('script', ['-qec', line, '/dev/null'], {
    env: { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}` },
  });

  assert.match(stdout, /33 101/);
  assert.match(stdout, / icanon /);
  assert.match(stdout, / echo /);
});

test('version, info and events', async () => {
  assert.match(await said('version'), /API version: +1\.24/);
  assert.match(await said('info'), /^Storage driver: +overlay2/m);
  assert.match(await said('events', '--since', '0', '--until', String(Date.now() / 1000)), /image load/);
});

test('a missing engine is reported as such', async () => {
  const { code, stderr } = await gantry(['-H', 'unix:///nowhere/gantry.sock', 'ps']);

  assert.equal(code, 1);
  assert.match(stderr, /^gantry: cannot connect to the engine at unix:\/\/\/nowhere/);
});
