import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';

import type { CallerState, LimitedCaller } from '@gantry/limiter/types.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { runGatewayCommand, sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { foreignName } from './foreign.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 2 },
  identities: {
    users: { '42': {}, '43': {} },
    tokens: [
      { sha256: sha256('of-42'), user: '42' },
      { sha256: sha256('of-43'), user: '43' },
    ],
  },
};
const gateway = await TestGateway.start(settings);
after(async () => await gateway[Symbol.asyncDispose]());

type Asked = Readonly<{ status: number; body: string }>;

async function admin(method: string, path: string, body?: string, of = gateway): Promise<Asked> {
  const outgoing = request({ socketPath: of.adminSocket, method, path, agent: false });
  const { promise, resolve, reject } = Promise.withResolvers<Asked>();
  outgoing.once('error', reject);
  outgoing.once('response', (incoming) => {
    text(incoming).then((answer) => resolve({ status: incoming.statusCode ?? 0, body: answer }), reject);
  });
  outgoing.end(body);
  return await promise;
}

test('explain lists the limited callers, their limits and the time, or says that there is none', async () => {
  await using own = await TestGateway.start(settings);
  const nobody = await own.cli('explain');
  for (let count = 0; count < 5; count += 1) await own.request('/user', { from: '127.5.0.1' });
  for (let count = 0; count < 81; count += 1) await own.request('/gists', { method: 'POST', token: 'of-42' });

  const [limited, json] = await Promise.all([own.cli('explain'), own.cli('explain', '--json')]);

  assert.deepEqual(nobody, { code: 0, output: 'Nobody is limited now.\n' });
  assert.equal(limited.code, 0);
  const [head, first, second] = limited.output.split('\n');
  assert.match(head ?? '', /^CALLER +LIMIT +WHERE +UNTIL +REFUSED$/);
  assert.match(first ?? '', /^ip:127\.5\.0\.1 +primary +core +\d\d:\d\d:\d\dZ \((59|60|61) min\) +3$/);
  assert.match(second ?? '', /^user:42 +content-minute +POST \/gists +\d\d:\d\d:\d\dZ \(\d+ s\) +1$/);
  const found = JSON.parse(json.output) as LimitedCaller[];
  assert.deepEqual(
    found.map(({ key, refusedBy, where, refused }) => [key, refusedBy, where, refused]),
    [
      ['ip:127.5.0.1', 'primary', 'core', 3],
      ['user:42', 'content-minute', 'POST /gists', 1],
    ],
  );
});

test('explain with a caller shows every count', async () => {
  const held = upstream.hold('/held');
  const slow = gateway.request('/held', { token: 'of-43' });
  await upstream.until(() => held.waiting() === 1);
  await gateway.request('/repos/o/r/issues', { method: 'POST', token: 'of-43' });

  const [shown, json, byConfig, unknown] = await Promise.all([
    gateway.cli('explain', 'user:43'),
    gateway.cli('explain', 'user:43', '--json'),
    runGatewayCommand('explain', 'user:43', '--config', gateway.file),
    gateway.cli('explain', 'user:nobody'),
  ]);
  held.release();
  await slow;

  assert.match(shown.output, /^user:43: 1 under way\nWINDOW +USED +UNTIL\n/);
  assert.match(shown.output, /\ncore +2 /);
  assert.match(shown.output, /\npoints POST \/repos\/\{\}\/\{\}\/issues +5 /);
  assert.match(shown.output, /\ncontent-hour +1 /);
  assert.match(shown.output, /\ncpu +\d+\.\d{3} s /);
  assert.equal(byConfig.output.split('\n')[0], 'user:43: 1 under way');
  assert.equal((JSON.parse(json.output) as CallerState).underWay, 1);
  assert.deepEqual(unknown, { code: 0, output: 'user:nobody: 0 under way, no open window\n' });
});

test('explain knows an address in other spellings', async () => {
  await using v6 = await TestGateway.start({ ...settings, trustProxy: ['127.0.0.1'] });
  await v6.request('/user', { headers: { 'x-forwarded-for': '2001:db8:1:2::77' } });

  for (const spelling of ['ip:2001:db8:1:2::77', 'ip:2001:DB8:1:2:ffff::', 'ip:2001:db8:1:2/64']) {
    const { output } = await v6.cli('explain', spelling);
    assert.match(output, /^ip:2001:db8:1:2\/64: 0 under way\n[^]*\ncore +1 /, spelling);
  }
});

test('content that was created elsewhere counts, and is never refused itself', async () => {
  const charged = await gateway.cli('content', 'user:42', '80');
  const refused = await gateway.request('/gists', { method: 'POST', token: 'of-42' });
  const more = await gateway.cli('content', 'user:42');
  const { windows } = JSON.parse((await gateway.cli('explain', 'user:42', '--json')).output) as CallerState;
  const other = await gateway.request('/gists', { method: 'POST', token: 'of-43' });

  assert.deepEqual(charged, { code: 0, output: '' });
  assert.deepEqual([refused.status, refused.statusText], [403, 'Secondary rate limit exceeded']);
  assert.equal(more.code, 0);
  const used = Object.fromEntries(windows.map((window) => [window.name, window.used]));
  assert.deepEqual([used['content-minute'], used['content-hour'], used['core']], [81, 81, undefined]);
  assert.equal(other.status, 200);
});

const wrongCommands = [
  [
    ['explain', 'nobody'],
    'a caller is expected: user:ID, installation:ID, app:ID, workflow:ID, network:NAME or ip:ADDRESS',
  ],
  [
    ['explain', 'ip:banana'],
    'a caller is expected: user:ID, installation:ID, app:ID, workflow:ID, network:NAME or ip:ADDRESS',
  ],
  [
    ['content', 'user:'],
    'a caller is expected: user:ID, installation:ID, app:ID, workflow:ID, network:NAME or ip:ADDRESS',
  ],
  [['content', 'user:42', '0'], 'COUNT must be from 1 to 999999, not 0'],
  [['content', 'user:42', '1e3'], 'COUNT must be from 1 to 999999, not 1e3'],
  [['content'], 'unknown arguments: content; see --help'],
  [['explain', 'a', 'b'], 'unknown arguments: explain a b; see --help'],
] as const;
for (const [args, message] of wrongCommands) {
  test(`refused: gateway ${args.join(' ')}`, async () => {
    const code = /^(?:COUNT|unknown arguments)/.test(message) ? 125 : 1;
    assert.deepEqual(await gateway.cli(...args), { code, output: `gantry gateway: ${message}\n` });
  });
}

test('without a gateway the commands say so', async () => {
  const { code, output } = await runGatewayCommand('explain', '--socket', join(gateway.folder, 'nothing.sock'));

  assert.equal(code, 1);
  assert.match(output, /^gantry gateway: no gateway answers on .*nothing\.sock: no such file or directory\n$/);
});

const wrongRequests: readonly (readonly [method: string, path: string, body: string | undefined, status: number])[] = [
  ['GET', '/nowhere', undefined, 404],
  ['POST', '/limited', undefined, 404],
  ['GET', '/callers/', undefined, 400],
  ['GET', '/callers/%zz', undefined, 400],
  ['GET', '/callers/user:a%20b', undefined, 400],
  ['POST', '/content', undefined, 400],
  ['POST', '/content', '{', 400],
  ['POST', '/content', '[]', 400],
  ['POST', '/content', '{"caller":42}', 400],
  ['POST', '/content', '{"caller":"user:42","count":-1}', 400],
  ['POST', '/content', '{"caller":"user:42","count":1.5}', 400],
  ['POST', '/content', '{"caller":"user:42","count":"2"}', 400],
  ['POST', '/content', '{"caller":"user:42","count":1e9}', 400],
  ['POST', '/content', 'x'.repeat(5000), 413],
];
for (const [method, path, body, status] of wrongRequests) {
  test(`the admin socket answers ${method} ${path} ${body?.slice(0, 40) ?? ''} with ${status}`, async () => {
    const before = await admin('GET', '/callers/user:42');

    const answer = await admin(method, path, body);

    assert.equal(answer.status, status);
    assert.equal(typeof (JSON.parse(answer.body) as { message: unknown }).message, 'string');
    assert.deepEqual(await admin('GET', '/callers/user:42'), before);
  });
}

test('requests to the admin socket end: large ones at once, and those that do not come to their end', async () => {
  const begun = [
    '',
    'POST /content HTTP/1.1\r\n',
    'POST /content HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
    `POST /content HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${`ffff\r\n${'x'.repeat(0xffff)}\r\n`.repeat(100)}0\r\n\r\n`,
  ];

  const answers = await Promise.all(
    begun.map(async (words) => {
      const socket = connect({ path: gateway.adminSocket, allowHalfOpen: true }).on('error', () => undefined);
      const ended = new Promise((resolve) => socket.once('close', resolve));
      let answer = '';
      socket.on('data', (bytes: Buffer) => (answer += bytes.toString()));
      socket.once('end', () => socket.destroy());
      socket.write(words);
      await ended;
      return /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1];
    }),
  );

  assert.deepEqual(answers, ['408', '408', '408', '413']);
});

test('only the user of the gateway can open the admin socket', () => {
  assert.equal(statSync(gateway.adminSocket).isSocket(), true);
  assert.equal(statSync(gateway.adminSocket).mode & 0o777, 0o600);
});

test('a second gateway does not take the admin socket of the first', async () => {
  const file = join(gateway.folder, 'second.yaml');
  const admin_ = { socket: gateway.adminSocket };
  writeFileSync(file, JSON.stringify({ upstream: upstream.url, listen: '127.0.0.1:0', admin: admin_ }));

  const { code, output } = await runGatewayCommand('--config', file);

  assert.equal(code, 1);
  assert.match(output, /admin\.sock is in use by another process/);
  assert.equal((await admin('GET', '/limited')).status, 200);
});

test('a file that is no socket is not removed for one', async () => {
  const precious = join(gateway.folder, 'precious');
  writeFileSync(precious, 'data');
  const file = join(gateway.folder, 'third.yaml');
  const results = [];
  for (const taken of [{ admin: { socket: precious } }, { admin: { socket: '' }, listen: `unix:${precious}` }]) {
    writeFileSync(file, JSON.stringify({ upstream: upstream.url, listen: '127.0.0.1:0', ...taken }));
    results.push(await runGatewayCommand('--config', file));
  }

  for (const { code, output } of results) {
    assert.equal(code, 1);
    assert.match(output, /^[^]*gantry gateway: [^\n]*precious is not a socket\n$/);
  }
  assert.equal(readFileSync(precious, 'utf8'), 'data');
});

test('a socket that a killed gateway has left is taken over, and is gone after an orderly end', async () => {
  await using killed = await TestGateway.start({ ...settings, listen: 'unix:{folder}/gateway.sock' });
  const left = { admin: killed.adminSocket, listen: killed.url };
  killed.signal('SIGKILL');
  await killed.exited;
  assert.ok(existsSync(left.admin));

  const next = await TestGateway.start({ ...settings, listen: left.listen, admin: { socket: left.admin } });
  const answer = await next.request('/user');
  await next[Symbol.asyncDispose]();

  assert.equal(answer.status, 200);
  assert.deepEqual([existsSync(left.admin), existsSync(left.listen.slice(5))], [false, false]);
});

test('there is no admin socket where it is configured away', async () => {
  await using closed = await TestGateway.start({ ...settings, admin: { socket: '' } });

  const { code, output } = await runGatewayCommand('explain', '--config', closed.file);

  assert.deepEqual([code, output], [125, `gantry gateway: ${closed.file}: admin.socket is empty, so there is none\n`]);
  assert.equal(existsSync(closed.adminSocket), false);
});

test('a port for Prometheus serves the metrics, and nothing else', async () => {
  await using measured = await TestGateway.start({ ...settings, admin: { metrics: '127.0.0.1:0' } });
  const { metrics } = await measured.logged('metrics are served');
  const { port } = metrics as { port: number };

  const answers = await Promise.all(
    ['/metrics', '/limited', '/callers/user:42', '/'].map(
      async (path) => await fetch(`http://127.0.0.1:${port}${path}`),
    ),
  );
  const body = (await answers[0]?.text()) ?? '';
  const content = await fetch(`http://127.0.0.1:${port}/content`, { method: 'POST', body: '{"caller":"user:42"}' });

  assert.deepEqual(
    [...answers, content].map(({ status }) => status),
    [200, 404, 404, 404, 404],
  );
  assert.equal(answers[0]?.headers.get('content-type'), 'text/plain; version=0.0.4');
  for (const line of body.trimEnd().split('\n')) {
    assert.match(
      line,
      /^(# HELP gantry_gateway_\w+ .+|# TYPE gantry_gateway_\w+ (counter|gauge|histogram)|gantry_gateway_\w+(\{\w+="[^"]+"(,\w+="[^"]+")*\})? \d+(\.\d+)?(e-\d+)?)$/,
    );
  }
});

test('the port for Prometheus answers by no name of another site', async () => {
  await using measured = await TestGateway.start({ ...settings, admin: { metrics: '127.0.0.1:0' } });
  const { port } = (await measured.logged('metrics are served'))['metrics'] as { port: number };
  const ask = async (host: string): Promise<number | undefined> => {
    const outgoing = request({ host: '127.0.0.1', port, path: '/metrics', agent: false, headers: { host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    return incoming.resume().statusCode;
  };

  const statuses = [await ask(`evil.example:${port}`), await ask('gateway'), await ask('localhost:9101')];

  assert.deepEqual(statuses, [403, 403, 200]);
  const everywhere = ['evil.example', '10.0.0.1:9101', '[2001:db8::1]:9101', 'gateway:9101', 'localhost', hostname()];
  assert.deepEqual(
    everywhere.map((host) => foreignName({ host }, '0.0.0.0') === undefined),
    [false, true, true, true, true, true],
  );
  assert.equal(foreignName({ host: 'Metrics.example:9101' }, 'metrics.example'), undefined);
});

test('the metrics agree with the requests', async () => {
  await using measured = await TestGateway.start({
    ...settings,
    limits: { anonymous: 100 },
    secondary: { contentPerMinute: { limit: 1 } },
    timeouts: { upstreamHeadersMs: 200 },
    shadow: ['points'],
    categories: { search: { limit: 1 } },
  });
  upstream.on('/created', (_request, response) => void response.writeHead(201).end());
  upstream.on('/missing', (_request, response) => void response.writeHead(404).end());
  upstream.on('/failing', (_request, response) => void response.writeHead(500).end());
  upstream.on('/gone', (incoming) => void incoming.socket.destroy());
  upstream.on('/silent', () => undefined);

  for (const path of ['/user', '/user', '/created', '/missing', '/failing', '/silent']) await measured.request(path);
  await measured.request('/gone', { method: 'POST' });
  for (let count = 0; count < 3; count += 1) await measured.request('/search/users');
  for (let count = 0; count < 2; count += 1) await measured.request('/gists', { method: 'POST' });
  await measured.request('/user', { token: 'wrong' });
  await measured.request('/a\\b');
  await measured.request('/rate_limit');
  const leave = new AbortController();
  const before = upstream.count('/silent');
  const left = measured.request('/silent', { signal: leave.signal }).catch(() => undefined);
  await upstream.until(() => upstream.count('/silent') > before);
  const during = await measured.metrics();
  leave.abort();
  await left;
  await eventually(
    'the client is seen to be gone',
    async () => (await measured.metrics()).get('gantry_gateway_clients_gone_total') === 1,
  );
  const metrics = await measured.metrics();

  const values = Object.fromEntries([...metrics].map(([name, value]) => [name.replace('gantry_gateway_', ''), value]));
  assert.equal(during.get('gantry_gateway_requests_under_way'), 1);
  const expected = {
    'responses_total{from="upstream",status="2xx"}': 5,
    'responses_total{from="upstream",status="4xx"}': 1,
    'responses_total{from="upstream",status="5xx"}': 1,
    'responses_total{from="gateway",status="2xx"}': 1,
    'responses_total{from="gateway",status="4xx"}': 5,
    'responses_total{from="gateway",status="5xx"}': 2,
    requests_admitted_total: 13,
    'requests_refused_total{limit="primary"}': 2,
    'requests_refused_total{limit="content-minute"}': 1,
    'requests_refused_total{limit="content-hour"}': 0,
    'requests_refused_total{limit="points"}': 0,
    'requests_refused_total{limit="ban"}': 0,
    'requests_shadowed_total{limit="points"}': 0,
    requests_unauthenticated_total: 1,
    requests_unreadable_total: 1,
    clients_gone_total: 1,
    'upstream_failures_total{kind="timeout"}': 1,
    'upstream_failures_total{kind="broken"}': 1,
    'upstream_failures_total{kind="connect"}': 0,
    store_failures_total: 0,
    requests_under_way: 0,
    upstream_response_seconds_count: 10,
    'upstream_response_seconds_bucket{le="+Inf"}': 10,
  };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, values[name]])), expected);
});

test('the version is told', async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as {
    version: string;
  };

  assert.deepEqual(await runGatewayCommand('--version'), { code: 0, output: `gantry gateway ${version}\n` });
});
