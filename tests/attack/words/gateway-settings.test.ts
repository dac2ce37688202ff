import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { ConfigError, readConfig } from '@gantry/gateway/config/read.ts';
import { runGatewayCommand } from '@gantry/testing/gateway/test-gateway.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-words-'));
after(() => rmSync(folder, { recursive: true }));

const LONG = 'a'.repeat(300);
const UPSTREAM = 'upstream: http://127.0.0.1:1\n';
const FILES = ['/nowhere', '/etc', '/etc/passwd', '/etc/passwd/x', `/${LONG}`, '/\\0', '/proc/self/mem'];

/** Whole files, each of which is refused. */
const documents: readonly (string | Buffer)[] = [
  ...['{', '[', 'a: b: c', '\t- x', '"\\u', '%YAML 3.0\n---\n', '&a [*a]', '*a', '!!js/function x', '- - -', '? ', "'"],
  ...['a: !!int x', '!!binary zz', '\0', '@', '`', '%', '\u0001', '? [a]\n: 3', '? {a: 1}\n: 3', 'null: 2', '[]', '3'],
  Buffer.from([0xff, 0xfe, 0]),
  ...['['.repeat(20_000), '- '.repeat(20_000), `x: ${'{a: '.repeat(3000)}`, `${UPSTREAM}---\n${UPSTREAM}`],
  `${UPSTREAM}a: &a [1]\nb: [${'*a,'.repeat(200)}]`,
  'upstream: http://%zz',
  'upstream: http://[::1',
  'upstream: http://a b',
  'upstream: http://x:99999',
];

/** Lines after that of the upstream, each of which is refused. */
const lines: readonly string[] = [
  ...['limits: !!binary zz', 'limits: &x {user: *x}', 'limits: {<<: {user: x}}', 'limits: null', 'a: &x {b: *x}'],
  ...['identities: {', 'identities: &x {users: *x}', 'identities: {users: []}', 'constructor: 3', '__proto__: 3'],
  ...FILES.flatMap((file) => [
    `tls: {certFile: "${file}", keyFile: "${file}"}`,
    `networks: [{name: a, file: "${file}"}]`,
    `introspection: {url: "http://x", authorizationFile: "${file}"}`,
  ]),
  ...[`unix:/${LONG}`, 'unix:', '[::1', 'a:b:c', ':99999', ''].map((listen) => `listen: "${listen}"`),
  ...['%zz', '[::1', 'x:99999', 'x/y', 'a%zz@b'].map((url) => `store: {kind: redis, url: "redis://${url}/%"}`),
  ...['http://x', `/${LONG}`, 'x'].map((url) => `store: {kind: redis, url: "${url}"}`),
  'store: {kind: redis, cluster: ["redis://[::1"]}',
  ...['.nan', '1e999', '-.inf', '1.5'].map((number) => `store: {timeoutMs: ${number}}`),
  'routes: ["/{", "x", "/a//b", "/%zz", "/{a}{b}", "/["]',
  'exempt: {routes: ["GET", "get /x", "GET /("], callers: [x, "user:", "ip:zz"]}',
  'introspection: {url: "http://[::1"}',
  'apiVersions: {known: [v3]}',
  'identities: {tokens: [{sha256: x}]}',
  `admin: {socket: "/${LONG}", metrics: x, page: "0.0.0.0:1"}`,
];

/** Commands that fail, or gateways that do not start. */
const commands: readonly (readonly string[])[] = [
  ['--nope'],
  ['--config'],
  ['--config', '/nowhere'],
  ['--check-config', '/etc'],
  ['explain', '--socket', '/nowhere'],
  ['explain', '--socket', '/etc'],
  ['explain', '--socket', `/${LONG}`],
  ['explain', '--socket', ''],
  ...['999.1.1.1:1', '192.0.2.1:1', 'unix:/proc', 'unix:/proc/version/x', 'unix:/proc/x', `unix:/${LONG}`].map(
    (listen) => ['--upstream', 'http://127.0.0.1:1', '--listen', listen],
  ),
];

suite('settings of the gateway that are wrong', () => {
  function check(problem: string): void {
    assert.equal(internalWord(problem), undefined, problem.slice(0, 600));
  }

  test('each problem is told in words of an operator, and none without end', () => {
    const file = join(folder, 'gateway.yaml');
    for (const text of [...documents, ...lines.map((line) => `${UPSTREAM}${line}\n`)]) {
      writeFileSync(file, text);
      assert.throws(
        () => readConfig(file),
        (error) => {
          assert.ok(error instanceof ConfigError, `${text.slice(0, 200).toString()}: ${String(error)}`);
          assert.ok(error.problems.length <= 20, String(error.problems.length));
          error.problems.forEach(check);
          return true;
        },
        text.slice(0, 200).toString(),
      );
    }
  });

  test('commands that fail say why in one line', async () => {
    const ended = await Promise.all(commands.map(async (args) => await runGatewayCommand(...args)));

    for (const { code, output } of ended) {
      assert.match(output, /^gantry gateway: [^\n]+\n$/, output);
      assert.notEqual(code, 0);
      check(output);
    }
  });
});
