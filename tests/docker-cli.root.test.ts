import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start({ image: false });
});
after(async () => await engine[Symbol.asyncDispose]());

async function docker(...command: string[]): Promise<string> {
  const { stdout, stderr, code } = await engine.docker(...command);
  assert.equal(code, 0, `docker ${command.join(' ')} ended with ${code}: ${stderr}`);
  return stdout.trim();
}

/** The command line under a pseudo-terminal; `answers` are typed one after another, each when its words were seen. */
async function underTerminal(command: string, answers: readonly (readonly [RegExp, string])[] = []): Promise<string> {
  const line = `stty rows 33 cols 101; docker -H unix://${engine.socketPath} ${command}; true`;
  const running = execute('script', ['-qec', line, '/dev/null']);
  const { stdin, stdout } = running.child;
  const left = [...answers];
  let seen = '';
  stdout!.on('data', (chunk: string) => {
    seen += chunk;
    if (left[0]?.[0].test(seen) !== true) return;
    stdin!.write(left.shift()![1]);
    seen = '';
  });
  return (await running).stdout;
}

test('version and info speak with the engine', async () => {
  assert.equal(await docker('version', '--format', '{{.Server.APIVersion}}'), NEWEST);
  assert.equal(await docker('info', '--format', '{{.Driver}} {{.OSType}}'), 'overlay2 linux');
});

test('load makes an image that images lists', async () => {
  const archive = join(engine.directory, 'busybox.tar');
  await writeFile(archive, await busyboxArchive());

  assert.equal(await docker('load', '-i', archive), 'Loaded image: busybox:latest');
  assert.equal(await docker('images', '--format', '{{.Repository}}:{{.Tag}}'), 'busybox:latest');
});

test('run prints the output and ends with the code of the container', async () => {
  assert.equal(await docker('run', '--rm', 'busybox', 'echo', 'hello'), 'hello');

  const failing = await engine.docker('run', '--rm', 'busybox', 'sh', '-c', 'echo oops >&2; exit 3');
  assert.deepEqual({ code: failing.code, stderr: failing.stderr }, { code: 3, stderr: 'oops\n' });
});

for (const [what, command, code] of [
  ['a missing program is 127', ['run', '--rm', 'busybox', 'nowhere'], 127],
  ['a folder is no program: 126', ['run', '--rm', 'busybox', '/bin'], 126],
  ['a limit that cannot be is 125', ['run', '--rm', '-m', '1k', 'busybox', 'true'], 125],
] as const) {
  test(what, async () => {
    assert.equal((await engine.docker(...command)).code, code);
  });
}

test('run -i passes stdin on to its end', async () => {
  const child = execute('docker', ['-H', `unix://${engine.socketPath}`, 'run', '--rm', '-i', 'busybox', 'cat']);
  child.child.stdin!.end('through\n');

  assert.equal((await child).stdout, 'through\n');
});

test('run -it has a terminal of the size of this one', async () => {
  assert.match(
    await underTerminal("run --rm -it busybox sh -c 'until stty size 2>&1 | grep 33; do :; done'"),
    /33 101/,
  );
});

test('run -d, ps, logs, exec, stop, rm', async () => {
  const id = await docker(
    'run',
    '-d',
    '--name',
    'life',
    'busybox',
    'sh',
    '-c',
    'trap "exit 5" TERM; echo up; while :; do sleep 0.1; done',
  );

  assert.match(await docker('ps', '--format', '{{.Names}} {{.Status}}'), /^life Up /);
  assert.equal(await docker('logs', 'life'), 'up');
  assert.equal(await docker('exec', 'life', 'hostname'), id.slice(0, 12));
  assert.equal((await engine.docker('exec', 'life', 'sh', '-c', 'exit 4')).code, 4);
  assert.equal(await docker('stop', 'life'), 'life');
  assert.match(await docker('ps', '-a', '--format', '{{.Names}} {{.Status}}'), /^life Exited \(5\)/);
  assert.equal(await docker('rm', 'life'), 'life');
});

test('exec -it has a terminal', async () => {
  await docker('run', '-d', '--name', 'terminal', 'busybox', 'sleep', '1000');

  // The client tells the size when the process runs, as with dockerd: until then it is not known.
  const script = 'until stty size 2>/dev/null | grep 33; do :; done';
  assert.match(await underTerminal(`exec -it terminal sh -c '${script}'`), /33 101/);
  await docker('rm', '-f', 'terminal');
});

test('the detach keys leave the container running', async () => {
  // It asks again and again, so that whoever attaches sees it.
  await docker('run', '-dit', '--name', 'detached', 'busybox', 'sh', '-c', 'while :; do echo asking; sleep 0.1; done');

  await underTerminal('attach detached', [[/asking/, '\u0010\u0011']]);

  assert.equal(await docker('inspect', '--format', '{{.State.Running}}', 'detached'), 'true');
  await docker('rm', '-f', 'detached');
});

test('logs -f follows until the end', async () => {
  await docker('run', '-d', '--name', 'talker', 'busybox', 'sh', '-c', 'for n in 1 2 3; do echo $n; sleep 0.1; done');

  assert.equal(await docker('logs', '-f', 'talker'), '1\n2\n3');
  assert.equal(await docker('logs', '--tail', '1', 'talker'), '3');
  await docker('rm', 'talker');
});

test('a published port answers on the loopback', async () => {
  const serve = 'echo served > /tmp/index.html; exec httpd -f -p 80 -h /tmp';
  await docker('run', '-d', '--name', 'web', '-p', '127.0.0.1::80', 'busybox', 'sh', '-c', serve);
  const port = Number((await docker('port', 'web', '80')).split(':').at(-1));

  assert.equal(await engine.fetchText(port), 'served\n');
  await docker('rm', '-f', 'web');
});

test('a bind mount and a named volume keep their files', async () => {
  const folder = join(engine.directory, 'shared');
  await docker(
    'run',
    '--rm',
    '-v',
    `${folder}:/shared`,
    '-v',
    'kept:/kept',
    'busybox',
    'sh',
    '-c',
    'echo a > /shared/f; echo b > /kept/f',
  );

  assert.equal(
    await docker('run', '--rm', '-v', `${folder}:/x:ro`, '-v', 'kept:/y', 'busybox', 'cat', '/x/f', '/y/f'),
    'a\nb',
  );
  await docker('volume', 'rm', 'kept');
});

test('a memory limit is the cgroup’s', async () => {
  const read = 'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null';
  assert.equal(
    await docker('run', '--rm', '-m', '64m', 'busybox', 'sh', '-c', `${read}; true`),
    String(64 * 1024 * 1024),
  );
});

test('kill, restart, rename, pause and unpause', async () => {
  await docker('run', '-d', '--name', 'first', 'busybox', 'sleep', '1000');
  await docker('rename', 'first', 'second');
  await docker('pause', 'second');
  assert.equal(await docker('inspect', '--format', '{{.State.Status}}', 'second'), 'paused');
  await docker('unpause', 'second');
  await docker('restart', '-t', '0', 'second');
  assert.equal(await docker('inspect', '--format', '{{.State.Status}}', 'second'), 'running');
  await docker('kill', 'second');
  assert.equal(await docker('wait', 'second'), '137');
  await docker('rm', 'second');
});

test('events tell a life in its order', async () => {
  const idFile = join(engine.directory, 'told');
  await docker('run', '--rm', '--cidfile', idFile, 'busybox', 'true');
  const id = await readFile(idFile, 'utf8');

  const until = String(Date.now() / 1000 + 1);
  const told = await docker(
    'events',
    '--filter',
    `container=${id}`,
    '--since',
    '0',
    '--until',
    until,
    '--format',
    '{{.Type}} {{.Action}}',
  );

  const expected = ['create', 'attach', 'start', 'die', 'destroy'].map((action) => `container ${action}`);
  assert.deepEqual(told.split('\n'), expected);
});

for (const [command, state] of [
  ['true', 'healthy'],
  ['false', 'unhealthy'],
] as const) {
  test(`ps, inspect and events show the result of the check '${command}'`, async () => {
    const check = ['--health-cmd', command, '--health-interval', '100ms', '--health-retries', '1'];
    const id = await docker('run', '-d', ...check, 'busybox', 'sleep', '1000');
    const row = ['ps', '--filter', `id=${id}`, '--format', '{{.Status}}'];

    while (!(await docker(...row)).endsWith(` (${state})`)) await setTimeout(20);

    assert.equal(await docker('inspect', '--format', '{{.State.Health.Status}}', id), state);
    assert.equal(await docker('ps', '--no-trunc', '-q', '--filter', `health=${state}`), id);
    const since = ['--since', '0', '--until', String(Date.now() / 1000 + 0.1)];
    const told = await docker('events', ...since, '--filter', `container=${id}`, '--format', '{{.Action}}');
    const changes = told.split('\n').filter((action) => action.startsWith('health_status'));
    assert.deepEqual(changes, [`health_status: ${state}`]);
    await docker('rm', '-f', id);
  });
}

test('cp, diff, export, import, commit, top and update', async () => {
  const [file, tree] = ['file', 'tree.tar'].map((name) => join(engine.directory, name)) as [string, string];
  await writeFile(file, 'copied');
  await docker('run', '-d', '--name', 'worked', '-m', '64m', 'busybox', 'sleep', '1000');

  await docker('cp', file, 'worked:/tmp/in');
  await docker('cp', 'worked:/tmp/in', `${file}-out`);
  await docker('export', '-o', tree, 'worked');
  await docker('import', tree, 'imported');
  await docker('commit', '-c', 'CMD ["cat", "/tmp/in"]', 'worked', 'committed');
  await docker('update', '-m', '96m', '--memory-swap', '96m', '--restart', 'on-failure:2', 'worked');

  assert.equal(await readFile(`${file}-out`, 'utf8'), 'copied');
  assert.equal(await docker('diff', 'worked'), 'C /tmp\nA /tmp/in');
  assert.equal(await docker('run', '--rm', 'imported', 'cat', '/tmp/in'), 'copied');
  assert.equal(await docker('run', '--rm', 'committed'), 'copied');
  assert.match(await docker('top', 'worked', '-o', 'pid,args'), /\d+ +sleep 1000$/);
  const format = '{{.HostConfig.Memory}} {{.HostConfig.RestartPolicy.Name}}';
  assert.equal(await docker('inspect', '--format', format, 'worked'), `${96 * 1024 * 1024} on-failure`);
  await docker('rm', '-f', 'worked');
  await docker('rmi', 'imported', 'committed');
});
