import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';
import { makeCertificates } from '@gantry/testing/tls/certificates.ts';

import { NEWEST } from '../versions/api-version.ts';

type Ran = { code: number; output: string };

/** Runs a command in the daemon's network namespace, also one that fails. */
async function onHost(engine: TestEngine, ...command: string[]): Promise<Ran> {
  try {
    return { code: 0, output: await engine.onHost(command, { timeout: 120_000 }) };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, output: stderr };
  }
}

suite('TCP with TLS', { concurrency: false }, () => {
  let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
  let engine: TestEngine;
  const file = (name: string): string => join(folder.path, name);
  before(async () => {
    folder = await mkdtempDisposable(join(tmpdir(), 'gantry-tls-'));
    makeCertificates(folder.path);
    const own = [`--tlscert=${file('server.pem')}`, `--tlskey=${file('server-key.pem')}`];
    engine = await TestEngine.start({
      image: false,
      flags: ['--host=tcp://0.0.0.0:2376', '--tlsverify', `--tlscacert=${file('ca.pem')}`, ...own],
    });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await folder.remove();
  });

  async function docker(client: string, ...command: string[]): Promise<Ran> {
    const words = [
      '--tlscacert',
      file('ca.pem'),
      '--tlscert',
      file(`${client}.pem`),
      '--tlskey',
      file(`${client}-key.pem`),
    ];
    const docker = ['sh', '-c', 'exec docker "$@" </dev/null', 'docker'];
    return await onHost(engine, ...docker, '-H', 'tcp://127.0.0.1:2376', '--tlsverify', ...words, ...command);
  }

  const version = ['version', '--format', '{{.Server.APIVersion}}'];

  test('a client with a certificate of the CA is let in', async () => {
    assert.deepEqual(await docker('client', ...version), { code: 0, output: `${NEWEST}\n` });
  });

  test('a client with a certificate of another CA is not', async () => {
    const { code, output } = await docker('foreign', ...version);

    assert.equal(code, 1);
    assert.match(output, /certificate/);
  });

  test('a client without a certificate is not', async () => {
    for (const [scheme, expected] of [['https', /fetch failed/]] as const) {
      const script = `process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; await fetch('${scheme}://127.0.0.1:2376/_ping')`;
      const { code, output } = await onHost(engine, process.execPath, '--input-type=module', '-e', script);
      assert.equal(code, 1);
      assert.match(output, expected);
    }
  });

  test('a client that does not speak TLS is told so', async () => {
    const script = "const a = await fetch('http://127.0.0.1:2376/_ping'); console.log(a.status, await a.text())";
    const { output } = await onHost(engine, process.execPath, '--input-type=module', '-e', script);

    assert.equal(output, '400 {"message":"Client sent an HTTP request to an HTTPS server."}\n');
  });

  test('the end of stdin, and that of the client, are seen through TLS', async () => {
    await engine.loadBusybox();
    const id = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } });
    const openFiles = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
    const before = openFiles();
    const script = `
      const { once } = require('node:events');
      const read = (name) => require('node:fs').readFileSync('${folder.path}/' + name);
      const keys = { ca: read('ca.pem'), cert: read('client.pem'), key: read('client-key.pem') };
      (async () => {
        for (const request of ['GET /events', 'POST /containers/${id}/wait', 'POST /containers/${id}/attach?stream=1&stdout=1']) {
          const raw = require('node:net').connect({ port: 2376, host: '127.0.0.1', allowHalfOpen: true });
          const socket = require('node:tls').connect({ ...keys, socket: raw, host: '127.0.0.1' });
          await once(socket, 'secureConnect');
          socket.end(request + ' HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n');
          if (!request.includes('wait')) await once(socket, 'data');
          setTimeout(() => raw.resetAndDestroy(), 100);
        }
      })();`;

    const echoed = await docker('client', 'exec', '-i', id, 'sh', '-c', 'cat; echo over');
    const left = await onHost(engine, process.execPath, '-e', script);

    assert.deepEqual(echoed, { code: 0, output: 'over\n' });
    assert.equal(left.code, 0, left.output);
    while (openFiles() > before) await setTimeout(20);
  });

  test('the Unix socket beside it needs none', async () => {
    assert.equal((await engine.get('/_ping')).status, 200);
  });
});

test('several hosts are served at once, and the socket belongs to the group that was told', async () => {
  await using engine = await TestEngine.start({
    image: false,
    flags: ['--host=tcp://127.0.0.1:2375', '--host=tcp://[::1]:2377', '--group=daemon'],
  });

  for (const host of ['127.0.0.1:2375', '[::1]:2377']) {
    const script = `const answer = await fetch('http://${host}/_ping'); console.log(answer.status, await answer.text())`;
    assert.deepEqual(await onHost(engine, process.execPath, '--input-type=module', '-e', script), {
      code: 0,
      output: '200 OK\n',
    });
  }
  const { mode, gid } = statSync(engine.socketPath);
  assert.deepEqual([mode & 0o777, gid], [0o660, 1]);
});

for (const [name, flags, message] of [
  [
    'TCP without TLS on all addresses',
    ['--host=tcp://0.0.0.0:2375'],
    /0\.0\.0\.0:2375: everyone who can reach TCP without TLS gets root/,
  ],
  ['a group that does not exist', ['--group=nobody-has-this'], /group nobody-has-this does not exist/],
  ['a host of an unknown kind', ['--host=fd://'], /fd:\/\//],
  [
    'a host with an unknown name',
    ['--host=tcp://x.invalid:1', '--insecure-tcp'],
    /: cannot listen: x.invalid: no such host\n$/,
  ],
  ['metrics at an unknown name', ['--metrics-addr=x.invalid:1'], /^gantry daemon: x.invalid: no such host\n$/m],
  [
    'a socket with a long path',
    [`--host=unix:///tmp/${'p'.repeat(200)}`],
    /: the path of a socket has at most 107 bytes\n$/,
  ],
  ['a socket that is a folder', ['--host=unix:///proc'], /: unix:\/\/\/proc: the file is not a socket\n$/],
  [
    'a socket in a folder that takes none',
    ['--host=unix:///proc/x'],
    /: cannot listen: \/proc\/x: permission denied\n$/,
  ],
  [
    'a file of a process id that is a folder',
    ['--pidfile=/proc'],
    /: the pid file \/proc cannot be written: illegal operation on a directory\n$/,
  ],
  ['TLS without a certificate', ['--host=tcp://127.0.0.1:2376', '--tls'], /tlscert/],
  [
    'a certificate that is not there',
    ['--host=tcp://127.0.0.1:2376', '--tls', '--tlscert=/no/c', '--tlskey=/no/k'],
    /\/no\/c/,
  ],
] as const) {
  test(`${name} is refused at the start`, async () => {
    await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-refused-'));

    const { status, stderr } = start(place.path, `--host=unix://${place.path}/sock`, ...flags);

    assert.equal(status, 1);
    assert.match(stderr, message);
    assert.equal(existsSync(join(place.path, 'sock')), false);
  });
}

test('a file where a socket is to be is refused at the start, and stays', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-refused-'));
  const precious = join(place.path, 'precious');
  writeFileSync(precious, 'data');

  const { status, stderr } = start(place.path, `--host=unix://${precious}`);

  assert.equal(status, 1);
  assert.match(stderr, /: unix:\S+precious: the file is not a socket\n$/);
  assert.equal(readFileSync(precious, 'utf8'), 'data');
});

/** Starts a daemon that fails, with its roots in a folder. */
function start(folder: string, ...flags: readonly string[]): { status: number | null; stderr: string } {
  const roots = ['data-root', 'exec-root', 'pidfile'].map((flag) => `--${flag}=${join(folder, flag)}`);
  const command = ['--net', process.execPath, join(import.meta.dirname, '../../main.ts'), ...roots, ...flags];
  return spawnSync('unshare', command, { encoding: 'utf8', timeout: 120_000 });
}

test('TCP without TLS on all addresses is served when the operator insists', async () => {
  await using engine = await TestEngine.start({ image: false, flags: ['--host=tcp://0.0.0.0:2375', '--insecure-tcp'] });

  const script = "console.log((await fetch('http://127.0.0.1:2375/version')).status)";
  assert.equal((await onHost(engine, process.execPath, '--input-type=module', '-e', script)).output, '200\n');
});

test('CORS headers stand on every answer where they were asked for, and preflights are answered', async () => {
  await using engine = await TestEngine.start({ image: false, flags: ['--api-cors-header=https://panel.example'] });

  for (const [method, path, status] of [
    ['GET', '/_ping', 200],
    ['GET', '/containers/none/json', 404],
    ['OPTIONS', '/containers/json', 200],
    ['OPTIONS', '/v1.24/containers/create', 200],
  ] as const) {
    const answer = await engine.request(method, path);
    assert.equal(answer.status, status, `${method} ${path}`);
    assert.equal(answer.headers['access-control-allow-origin'], 'https://panel.example');
    assert.match(String(answer.headers['access-control-allow-methods']), /DELETE/);
  }
});
