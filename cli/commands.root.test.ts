import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { jsonLines } from '@gantry/client/json-lines.ts';
import { gantry, refused as refusedBy, said as saidBy, type Outcome } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start();
});
after(async () => await engine[Symbol.asyncDispose]());

const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);
const refused = async (...words: string[]): Promise<Outcome> => await refusedBy(engine, ...words);

test('a life in small steps: create, start, pause, unpause, restart, rename, wait, rm', async () => {
  const idFile = join(engine.directory, 'id');
  const id = await said(
    'create',
    '--name',
    'step',
    '--cidfile',
    idFile,
    'busybox',
    'sh',
    '-c',
    'trap "exit 7" TERM; while :; do sleep 0.1; done',
  );
  assert.equal(await readFile(idFile, 'utf8'), id);
  const statusIs = async (status: string) => assert.equal(await said('inspect', '-f', '{{.State.Status}}', id), status);

  await statusIs('created');
  assert.equal(await said('start', 'step'), 'step');
  await statusIs('running');
  assert.equal(await said('pause', 'step'), 'step');
  await statusIs('paused');
  assert.equal(await said('unpause', 'step'), 'step');
  assert.equal(await said('restart', '-t', '5', 'step'), 'step');
  assert.match(await said('top', 'step'), /^UID +PID.*CMD\n[^]*sleep/);
  await said('rename', 'step', 'other');
  const waiting = said('wait', 'other');
  await said('container', 'stop', 'other');
  assert.equal(await waiting, '7');
  assert.equal(await said('container', 'rm', 'other'), 'other');
});

test('start -a shows the output and ends with the container’s code', async () => {
  await said('create', '--name', 'speaker', '-i', 'busybox', 'sh', '-c', 'read line; echo "heard $line"; exit 5');

  const { stdout, code } = await gantry(engine, ['start', '-ai', 'speaker'], { stdin: 'this\n' });

  assert.deepEqual([stdout, code], ['heard this\n', 5]);
  await said('rm', 'speaker');
});

test('run -d --rm removes the container when it has ended, also after a crash of the engine', async () => {
  const id = await said('run', '-d', '--rm', '--name', 'brief', 'busybox', 'sleep', '1000');
  await engine.kill();
  await engine.startAgain();
  const events = await engine.stream('GET', '/events?filters={"event":["destroy"]}');
  await said('kill', 'brief');

  for await (const event of jsonLines<{ id: string }>(events)) {
    assert.equal(event.id, id);
    break;
  }
});

test('exec takes variables, files of them and a folder', async () => {
  await writeFile(join(engine.directory, 'env'), 'B=2\n');
  await said('run', '-d', '--name', 'place', 'busybox', 'sleep', '1000');

  const output = await said(
    'exec',
    '-e',
    'A=1',
    '--env-file',
    join(engine.directory, 'env'),
    '-w',
    '/proc',
    'place',
    'sh',
    '-c',
    'echo $A $B; pwd',
  );

  assert.equal(output, '1 2\n/proc');
  assert.equal(await said('rm', '-f', 'place'), 'place');
});

test('rm -f of a missing object succeeds, without -f it fails', async () => {
  const forced = await gantry(engine, ['rm', '-f', 'nosuch']);

  assert.deepEqual([forced.code, forced.stdout], [0, '']);
  assert.match(forced.stderr, /^gantry: No such container: nosuch/);
  assert.equal((await refused('rm', 'nosuch')).code, 1);
});

test('flags of run reach the container', async () => {
  const script =
    'id -u; cat /proc/self/limits | grep "open files"; grep -c CapEff.*0000000000000000 /proc/self/status; grep added /etc/hosts; df -k /dev/shm | tail -1; touch /x 2>&1; ls -d /m/v; hostname';
  const output = await said(
    'run',
    '--rm',
    '-u',
    '1000',
    '--ulimit',
    'nofile=100:200',
    '--cap-drop',
    'ALL',
    '--add-host',
    'added:10.9.8.7',
    '--shm-size',
    '1m',
    '--read-only',
    '--mount',
    'type=volume,src=made,dst=/m/v,readonly',
    '-h',
    'named',
    '--cpus',
    '0.5',
    '-P',
    '--expose',
    '80',
    '--tmpfs',
    '/t',
    '--log-opt',
    'max-size=1m',
    '--stop-signal',
    'INT',
    'busybox',
    'sh',
    '-c',
    script,
  );

  assert.match(
    output,
    /^1000\nMax open files +100 +200 +files *\n1\n10\.9\.8\.7\s+added\n\S+ +1024 [^]*Read-only file system\n\/m\/v\nnamed$/,
  );
  assert.equal(await said('volume', 'rm', 'made'), 'made');
});

test('ports, sizes and digests have their columns', async () => {
  await said('run', '-d', '--name', 'open', '-p', '127.0.0.1:18080:80', 'busybox', 'sleep', '1000');

  assert.equal(await said('port', 'open'), '80/tcp -> 127.0.0.1:18080');
  assert.equal(await said('port', 'open', '80'), '127.0.0.1:18080');
  assert.match((await refused('port', 'open', '81')).stderr, /No public port '81' published for open/);
  assert.match(
    await said('ps', '-s', '-f', 'name=open'),
    /^CONTAINER ID +IMAGE .* +NAMES +SIZE\n.* open +\d+B \(virtual [\d.]+MB\)$/,
  );
  assert.match(await said('images', '--digests'), /^REPOSITORY +TAG +DIGEST +IMAGE ID/);
  await said('rm', '-f', 'open');
});

test('save, rmi, load, tag and history', async () => {
  const archive = join(engine.directory, 'saved.tar');
  await said('tag', 'busybox', 'other/name:1');
  await said('save', '-o', archive, 'other/name:1');
  assert.match(await said('rmi', 'other/name:1'), /Untagged: other\/name:1/);
  assert.match(await said('load', '-i', archive), /Loaded image: other\/name:1/);
  assert.match(await said('history', 'other/name:1'), /^IMAGE +CREATED +CREATED BY +SIZE +COMMENT\n/);
  await said('image', 'rm', 'other/name:1');
  await rm(archive);
});

test('a missing archive is reported before a missing engine', async () => {
  const { code, stderr } = await refused('load', '-i', '/nonexistent');

  assert.deepEqual([code, stderr], [1, 'gantry: cannot open /nonexistent: no such file or folder\n']);
});

test('volumes and networks are listed, filtered and shown', async () => {
  assert.equal(await said('volume', 'create', '--label', 'a=b', 'pages'), 'pages');
  assert.equal(await said('volume', 'ls', '-q', '--filter', 'label=a=b'), 'pages');
  assert.equal(await said('volume', 'ls', '--format', '{{.Driver}} {{.Name}} {{.Label "a"}}'), 'local pages b');
  assert.equal(await said('volume', 'inspect', '-f', '{{json .Labels}}', 'pages'), '{"a":"b"}');
  assert.equal(await said('volume', 'rm', 'pages'), 'pages');
  assert.equal(
    await said('network', 'ls', '--format', '{{.Name}} {{.Driver}} {{.Scope}}'),
    'bridge bridge local\nhost host local\nnone null local',
  );
  assert.equal(await said('network', 'inspect', '-f', '{{.Name}}', 'bridge'), 'bridge');
});

test('inspect finds containers, images, networks and volumes, and names the missing ones', async () => {
  const { stdout, stderr, code } = await gantry(engine, ['inspect', 'busybox', 'nosuch', 'bridge']);

  assert.equal((JSON.parse(stdout) as unknown[]).length, 2);
  assert.deepEqual([stderr, code], ['gantry: No such object: nosuch\n', 1]);
  assert.equal((await refused('inspect', '--type', 'volume', 'busybox')).code, 1);
});

test('lists show the values of docker’s command line', async () => {
  await said(
    'run',
    '-d',
    '--name',
    'same',
    '-p',
    '127.0.0.1:18081-18082:80-81',
    '-v',
    'data:/data',
    '-l',
    'x=y',
    'busybox',
    'sleep',
    '1000',
  );
  const fields =
    '{{.ID}}|{{.Image}}|{{.Command}}|{{.CreatedAt}}|{{.Ports}}|{{.State}}|{{.Names}}|{{.Labels}}|{{.Mounts}}|{{.LocalVolumes}}|{{.Networks}}|{{.Label "x"}}';
  for (const line of [
    ['ps', '--no-trunc', '--format', fields],
    ['ps', '--format', fields],
    ['ps', '--format', 'table {{.Names}}\\t{{.Image}}'],
    ['ps', '-q'],
    ['ps', '-a', '--filter', 'status=exited'],
    ['images', '--format', '{{.Repository}}|{{.Tag}}|{{.ID}}|{{.Digest}}|{{.CreatedSince}}|{{.CreatedAt}}|{{.Size}}'],
    ['images'],
    ['history', '--no-trunc', '--format', '{{.ID}}|{{.CreatedBy}}|{{.Size}}|{{.Comment}}', 'busybox'],
    ['volume', 'ls'],
    ['network', 'ls', '--no-trunc'],
    ['port', 'same'],
    ['inspect', '--format', '{{.Name}} {{json .HostConfig.PortBindings}} {{range .Config.Cmd}}<{{.}}>{{end}}', 'same'],
    ['info', '--format', '{{.Driver}} {{.NCPU}}'],
    ['version', '--format', '{{.Server.Version}}'],
  ]) {
    const [theirs, ours] = await Promise.all([engine.docker(...line), gantry(engine, line)]);
    assert.deepEqual([line, ours.stdout, ours.code], [line, theirs.stdout, theirs.code]);
  }
  await said('rm', '-fv', 'same');
  await said('volume', 'rm', 'data');
});

test('logs --since with a duration shows the younger lines', async () => {
  await said('run', '--name', 'old', 'busybox', 'echo', 'said');

  assert.equal(await said('logs', '--since', '10m', 'old'), 'said');
  assert.equal(await said('logs', '--since', '0s', 'old'), '');
  await said('rm', 'old');
});
