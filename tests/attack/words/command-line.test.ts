import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { internalWord } from '@gantry/testing/internal-words.ts';

const MAIN = join(import.meta.dirname, '../../../cli/main.ts');
const LONG = 'a'.repeat(300);
const folder = mkdtempSync(join(tmpdir(), 'gantry-words-'));
after(() => rmSync(folder, { recursive: true }));

type Environment = Readonly<Record<string, string>>;
type Row = readonly [words: readonly string[], environment?: Environment];

/** Returns the standard error of a command. */
async function said([words, environment = {}]: Row): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const env = { PATH: process.env.PATH, HOME: folder, ...environment };
  execFile(process.execPath, [MAIN, ...words], { env, timeout: 120_000 }, (_error, _stdout, stderr) => resolve(stderr));
  return await promise;
}

async function check(rows: readonly Row[], expected: RegExp): Promise<void> {
  const all = await Promise.all(rows.map(said));
  for (const [index, text] of all.entries()) {
    assert.match(text, expected, JSON.stringify(rows[index]).slice(0, 300));
    assert.equal(internalWord(text), undefined, `${JSON.stringify(rows[index]).slice(0, 300)}: ${text}`);
  }
}

/** A port whose connections get this answer. */
async function answering(parts: DisposableStack, answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => answer(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  parts.defer(() => void server.close());
  await once(server, 'listening');
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function certificates(name: string, text: string): Environment {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  for (const file of ['ca', 'cert', 'key']) writeFileSync(join(path, `${file}.pem`), text);
  return { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: path };
}

function context(text: string): Environment {
  const path = join(folder, 'contexts/meta', hash('sha256', 'own'));
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'meta.json'), text);
  return { DOCKER_CONFIG: folder, DOCKER_CONTEXT: 'own' };
}

suite('errors of the command line have no words of the kernel and of parsers', () => {
  test('hosts that are none, or that nobody serves', async () => {
    const hosts = [
      ...['unix:///nowhere', 'unix:///etc/passwd', 'unix:///etc/passwd/x', `unix:///${LONG}`, 'unix://', 'tcp://%zz'],
      ...['tcp://127.0.0.1:1', 'tcp://[::1', 'tcp://x:99999', 'tcp://x.invalid:1', `tcp://${LONG}:1`, 'http://x', 'x'],
    ];

    await check(
      hosts.map((host) => [['-H', host, 'ps']]),
      /^gantry: [^\n]+\n(?:See 'gantry ps --help'\.\n)?$/,
    );
  });

  test('engines that speak something else', async () => {
    using parts = new DisposableStack();
    const rows: Row[] = [];
    for (const answer of ['SSH-2.0-OpenSSH_9.6\r\n', '', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[']) {
      const host = await answering(parts, (socket) => socket.once('data', () => socket.end(answer)));
      rows.push([['-H', host, 'ps']], [['-H', host, 'ps'], certificates('garbage', 'garbage')]);
    }

    await check(rows, /^gantry: [^\n]+\n(?:See 'gantry ps --help'\.\n)?$/);
  });

  test('certificates, contexts and settings that cannot be read', async () => {
    const at = ['-H', 'tcp://127.0.0.1:1'];
    const rows: Row[] = [
      [[...at, 'ps'], { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/nowhere' }],
      [[...at, 'ps'], certificates('empty', '')],
      [[...at, 'ps'], certificates('half', '-----BEGIN CERTIFICATE-----\nAAAA\n')],
      [['ps'], { DOCKER_CONTEXT: 'none' }],
      [['ps'], context('{')],
    ];
    await check(rows, /^gantry: [^\n]+\n(?:See 'gantry ps --help'\.\n)?$/);
    for (const text of ['null', '{"Endpoints":3}', '{"Endpoints":{"docker":{"Host":"x"}}}']) {
      await check([[['ps'], context(text)]], /^gantry: [^\n]+\n(?:See 'gantry ps --help'\.\n)?$/);
    }
    for (const text of ['{', '[]', '{"auths":3}', '{"auths":{"x":{"auth":"%%"}}}', '{"credHelpers":{"x":"none"}}']) {
      writeFileSync(join(folder, 'config.json'), text);
      await check([[[...at, 'pull', 'x/y'], { DOCKER_CONFIG: folder }]], /^gantry: [^\n]+\n$/);
    }
  });

  test('files that cannot be read', async () => {
    const at = ['-H', 'tcp://127.0.0.1:1'];
    const rows = ['/nowhere', '/etc', '/etc/passwd/x', `/${LONG}`].flatMap((file): Row[] => [
      [[...at, 'run', '--label-file', file, 'x']],
      [[...at, 'run', '--security-opt', `seccomp=${file}`, 'x']],
      [[...at, 'build', `${file}/x`]],
      [[...at, 'load', '-i', file]],
      [[...at, 'import', file]],
      [[...at, 'secret', 'create', 'x', file]],
    ]);

    await check(rows, /^gantry: [^\n]+\n(?:See '[^\n]+\n)?$/);
  });
});
