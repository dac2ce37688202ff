import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import type { CallerState } from '@gantry/limiter/types.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { type RawAnswer, RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { RawUpstream } from '@gantry/testing/gateway/raw-upstream.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const settings: Settings = { limits: { anonymous: 10_000 }, timeouts: { requestMs: 1500 } };

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** Each test is a caller of its own: another address of loopback. */
let addresses = 1;
function nextAddress(): string {
  addresses += 1;
  return `127.0.0.${addresses}`;
}

async function callerAt(address: string, at = gateway): Promise<CallerState> {
  return await askCaller(at.adminSocket, `ip:${address}`);
}

async function usedBy(address: string): Promise<number> {
  return (await callerAt(address)).windows.find(({ name }) => name === 'core')?.used ?? 0;
}

function assertTellsClearly(answer: RawAnswer, status: number): void {
  assert.equal(answer.status, status, `${answer.status}: ${answer.body}`);
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(typeof (JSON.parse(answer.body) as { message: unknown }).message, 'string');
  assert.ok(answer.headers.has('x-ratelimit-remaining'), 'it has the headers of the rate limit');
}

/** A byte every tenth of a second. */
function sendSlowly(client: RawClient): Disposable {
  const timer = setInterval(() => client.send('x'), 100);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

const head = 'Host: a\r\n';

/** Never passed on: told once, counted once. */
const refused: Readonly<Record<string, readonly [request: string, status: number]>> = {
  'no HTTP at all': ['hello\r\n\r\n', 400],
  'an unknown method': [`FETCH / HTTP/1.1\r\n${head}\r\n`, 400],
  'another version of HTTP': [`GET / HTTP/3.0\r\n${head}\r\n`, 400],
  'a length and chunks': [
    `POST / HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled`,
    400,
  ],
  'chunks and a length': [
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled`,
    400,
  ],
  'two lengths': [`POST / HTTP/1.1\r\n${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`, 400],
  'the same length twice': [`POST / HTTP/1.1\r\n${head}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, 400],
  'a list of lengths': [`POST / HTTP/1.1\r\n${head}Content-Length: 5, 5\r\n\r\nhello`, 400],
  'a length with a sign': [`POST / HTTP/1.1\r\n${head}Content-Length: +5\r\n\r\nhello`, 400],
  'a length below zero': [`POST / HTTP/1.1\r\n${head}Content-Length: -5\r\n\r\nhello`, 400],
  'a length that is no number': [`POST / HTTP/1.1\r\n${head}Content-Length: 0x5\r\n\r\nhello`, 400],
  'a length beyond all numbers': [`POST / HTTP/1.1\r\n${head}Content-Length: 99999999999999999999\r\n\r\nhello`, 400],
  'an unknown transfer coding': [`POST / HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 501],
  'another coding around the chunks': [
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    501,
  ],
  'chunks that are not the last coding': [`POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked, gzip\r\n\r\n`, 400],
  'chunks twice': [`POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 400],
  'a header over two lines': [`GET / HTTP/1.1\r\n${head}X-Folded: one\r\n two\r\n\r\n`, 400],
  'a length over two lines': [`POST / HTTP/1.1\r\n${head}Content-Length:\r\n 5\r\n\r\nhello`, 400],
  'lines that end with LF alone': ['GET / HTTP/1.1\nHost: a\n\n', 400],
  'a header that ends with LF alone': ['GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n', 400],
  'a CR inside a header': [`GET / HTTP/1.1\r\n${head}X: a\rb\r\n\r\n`, 400],
  'a NUL inside a header': [`GET / HTTP/1.1\r\n${head}X: a\0b\r\n\r\n`, 400],
  'a space before the colon': [`POST / HTTP/1.1\r\n${head}Content-Length : 5\r\n\r\nhello`, 400],
  'a header without a name': [`GET / HTTP/1.1\r\n${head}: nothing\r\n\r\n`, 400],
  'no Host': ['GET / HTTP/1.1\r\n\r\n', 400],
  'two Hosts': ['GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
  'a tunnel': ['CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n', 405],
  'a tunnel with a body': ['CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 5\r\n\r\n', 405],
  'a target that is no path': [`OPTIONS * HTTP/1.1\r\n${head}\r\n`, 400],
  'a target without a slash': [`GET user HTTP/1.1\r\n${head}\r\n`, 400],
  'a target of another scheme': [`GET ftp://a/b HTTP/1.1\r\n${head}\r\n`, 400],
  'a NUL in the path': [`GET /a%00b HTTP/1.1\r\n${head}\r\n`, 400],
  'a line end in the path': [`GET /a%0d%0aX-Injected:%20b HTTP/1.1\r\n${head}\r\n`, 400],
  'a backslash in the path': [`GET /a\\..\\b HTTP/1.1\r\n${head}\r\n`, 400],
  'half an escape': [`GET /a%2 HTTP/1.1\r\n${head}\r\n`, 400],
  'a path that leaves the root': [`GET /../etc/passwd HTTP/1.1\r\n${head}\r\n`, 400],
  'the same with escapes': [`GET /a/%2e%2e/%2E%2E/b HTTP/1.1\r\n${head}\r\n`, 400],
  'bytes that are not ASCII': [`GET /\xe4 HTTP/1.1\r\n${head}\r\n`, 400],
};

for (const [what, [request, status]] of Object.entries(refused)) {
  test(`refused and counted once: ${what}`, async () => {
    const address = nextAddress();
    const before = upstream.received.length;
    using client = await RawClient.connect(gateway, address);

    const answer = await client.send(request).answer();

    assertTellsClearly(answer, status);
    assert.equal(client.received, '');
    assert.equal(await usedBy(address), 1);
    assert.equal(upstream.received.length, before);
  });
}

/** Passed on in the one spelling that was judged. */
const canonical: Readonly<Record<string, string>> = {
  '//search//issues?q=a': '/search/issues?q=a',
  '/repos/../search/./issues': '/search/issues',
  '/%73earch/%69ssues': '/search/issues',
  '/a/%2e%2e/search/issues': '/search/issues',
  'http://elsewhere.example/search/issues': '/search/issues',
  'HTTP://elsewhere.example?q=1': '/?q=1',
};

for (const [written, passed] of Object.entries(canonical)) {
  test(`passed on in one spelling: ${written}`, async () => {
    const address = nextAddress();
    using client = await RawClient.connect(gateway, address);

    const answer = await client.send(`GET ${written} HTTP/1.1\r\n${head}\r\n`).answer();

    assert.equal((JSON.parse(/\{.*\}/.exec(answer.body)?.[0] ?? '') as { url: string }).url, passed);
  });
}

test('bytes behind a broken request are not read as another one', async () => {
  const before = upstream.received.length;
  using client = await RawClient.connect(gateway, nextAddress());

  client.send(`GET / HTTP/1.1\r\n${head}X: a\rb\r\n\r\nGET /smuggled HTTP/1.1\r\n${head}\r\n`);
  const answer = await client.answer();
  await client.closed;

  assert.equal(answer.status, 400);
  assert.equal(client.received, '');
  assert.equal(upstream.received.length, before);
});

test('a request that is answered late keeps its answer when rubbish follows it', async () => {
  const held = upstream.hold('/held');
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);
  client.send(`GET /held HTTP/1.1\r\n${head}\r\nrubbish\r\n\r\n`);
  await upstream.until(() => held.waiting() === 1);

  held.release();
  const answer = await client.answer();
  await client.closed;

  assert.match(answer.body, /released/);
  assert.equal(client.received, '');
  assert.equal(await usedBy(address), 2);
});

test('headers of a megabyte are 431, whether they are one or many', async () => {
  const address = nextAddress();
  using one = await RawClient.connect(gateway, address);
  using many = await RawClient.connect(gateway, address);

  const first = await one.send(`GET / HTTP/1.1\r\n${head}X: ${'x'.repeat(2 ** 20)}\r\n\r\n`).answer();
  const second = await many.send(`GET / HTTP/1.1\r\n${head}${'X: y\r\n'.repeat(170_000)}\r\n`).answer();

  for (const answer of [first, second]) assertTellsClearly(answer, 431);
  assert.equal(await usedBy(address), 2);
});

test('no header is left out because there are many', async () => {
  let received = '';
  await using raw = await RawUpstream.start((socket, text) => {
    received += text;
    if (received.includes('\r\n\r\n')) socket.end('HTTP/1.1 204 No Content\r\n\r\n');
  });
  await using before = await TestGateway.start({ ...settings, upstream: raw.url });
  using client = await RawClient.connect(before);

  await client.send(`GET / HTTP/1.1\r\n${head}${'X: y\r\n'.repeat(3000)}X-Last: here\r\n\r\n`).answer();

  assert.match(received, /X-Last: here/i);
});

test('a path of a megabyte is 431', async () => {
  using client = await RawClient.connect(gateway, nextAddress());

  const answer = await client.send(`GET /${'a'.repeat(2 ** 20)} HTTP/1.1\r\n${head}\r\n`).answer();

  assertTellsClearly(answer, 431);
});

test('a chunk that cannot be read ends the request, which was counted before', async () => {
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);
  client.send(`POST /chunks HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`);
  await eventually('it was counted', async () => (await usedBy(address)) === 1);

  const answer = await client.send('nonsense\r\n\r\n').answer();
  await client.closed;

  assertTellsClearly(answer, 400);
  const { underWay } = await callerAt(address);
  assert.deepEqual([await usedBy(address), underWay], [1, 0]);
});

test('a client that sends its headers a byte at a time is told that it is too slow', async () => {
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);
  using _sending = sendSlowly(client);

  client.send('GET / HTTP/1.1\r\nX: ');
  const answer = await client.answer();

  assertTellsClearly(answer, 408);
  assert.equal(await usedBy(address), 1);
});

for (const [what, path] of [
  ['a body', '/slow-body'],
  ['a GraphQL request', '/graphql'],
] as const) {
  test(`a client that sends ${what} a byte at a time is told that it is too slow, and holds no place`, async () => {
    const address = nextAddress();
    using client = await RawClient.connect(gateway, address);
    using _sending = sendSlowly(client);

    client.send(`POST ${path} HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\n`);
    const answer = await client.answer();

    assertTellsClearly(answer, 408);
    const { underWay, windows } = await callerAt(address);
    const spent = windows.filter(({ name }) => name === 'core' || name === 'graphql').map(({ used }) => used);
    assert.deepEqual([underWay, spent], [0, [1]]);
  });
}

test('a connection on which nothing is ever sent is closed, and nothing is counted', async () => {
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);

  await client.closed;

  assert.equal(client.received, '');
  assert.equal(await usedBy(address), 0);
});

test('a client that ends its side before its request is complete leaves nothing behind', async () => {
  const address = nextAddress();
  using inHead = await RawClient.connect(gateway, address);
  using inBody = await RawClient.connect(gateway, address);

  inHead.send('GET / HTTP/1.1\r\nHost').socket.end();
  inBody.send(`POST /half HTTP/1.1\r\n${head}Content-Length: 100\r\n\r\nhalf`).socket.end();
  await Promise.all([inHead.closed, inBody.closed]);

  await eventually('nothing is under way', async () => (await callerAt(address)).underWay === 0);
  assert.equal(await usedBy(address), 2);
});

test('malformed credentials are 401 and count on the address', async () => {
  const wrong = [
    'Bearer',
    'Bearer ',
    'Bearer two words',
    'Bearer caf\xe9',
    'Basic !!!',
    'Basic bm9jb2xvbg==',
    `Basic ${Buffer.from('a\r\nb:c').toString('base64')}`,
    'Digest username="a"',
    'nonsense',
    `Bearer ${'x'.repeat(20_000)}`,
  ];
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);

  for (const value of wrong) {
    const answer = await client.send(`GET /user HTTP/1.1\r\n${head}Authorization: ${value}\r\n\r\n`).answer();
    assertTellsClearly(answer, 401);
  }

  assert.equal(await usedBy(address), wrong.length);
});

const graphql: Readonly<Record<string, string>> = {
  'brackets without an end': '{'.repeat(60_000),
  'JSON in JSON in JSON': `{"query":"{a}","variables":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  'a query of brackets': JSON.stringify({ query: '{a'.repeat(20_000) + '}'.repeat(20_000) }),
  'quotes without an end': JSON.stringify({ query: `{a(b:"${'\\"'.repeat(10_000)}` }),
  'block strings without an end': JSON.stringify({ query: `{a(b:"""${'\\"""'.repeat(10_000)}` }),
  'many operations': JSON.stringify({ query: 'query a{b}'.repeat(5000), operationName: 'a' }),
  'half of it': '{"query":"{a}"',
  nothing: '',
  'no JSON': 'query { a }',
  'the wrong kinds': '{"query":{"query":[1]}}',
  'bytes that are no text': '{"query":"\xff\xfe"}',
  'a comment without an end': JSON.stringify({ query: `#${'a'.repeat(60_000)}` }),
};

test('GraphQL that is broken or nested deeply is passed on as it is', async () => {
  for (const [what, body] of Object.entries(graphql)) {
    using client = await RawClient.connect(gateway, nextAddress());

    client.send(
      `POST /graphql HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const answer = await client.answer();

    assert.equal(answer.status, 200, what);
    assert.equal(answer.headers.get('x-ratelimit-resource'), 'graphql', what);
  }
});

/** Headers of proxies, CDNs and single sign-on, by which servers know the client, its scheme and its host. */
const spokenFor = [
  ...['CF-Connecting-IP', 'CF-Connecting-IPv6', 'CF-Pseudo-IPv4', 'CF-IPCountry', 'CF-Visitor', 'Client-IP'],
  ...['X-Cluster-Client-IP', 'Fastly-Client-IP', 'Fly-Client-IP', 'DO-Connecting-IP', 'WL-Proxy-Client-IP'],
  ...['Proxy-Client-IP', 'HTTP-Client-IP', 'X-Remote-IP', 'X-Remote-Addr', 'X-Originating-IP', 'X-Azure-ClientIP'],
  ...['X-Azure-SocketIP', 'X-AppEngine-User-IP', 'X-Envoy-External-Address', 'CloudFront-Viewer-Address'],
  ...[
    'X-Forwarded',
    'Forwarded-For',
    'X-Forwarded-Ssl',
    'X-Forwarded-Scheme',
    'X-Forwarded-Port',
    'X-Forwarded-Server',
  ],
  ...['X-Forwarded-Prefix', 'X-Forwarded-User', 'X-Forwarded-Email', 'X-Forwarded-Client-Cert', 'X-Original-Host'],
  ...['X-Original-Forwarded-For', 'X-Scheme', 'X-Url-Scheme', 'Front-End-Https', 'X-Host', 'X-Arr-Ssl', 'Remote-User'],
  ...['X-Remote-User', 'Remote-Groups', 'X-WEBAUTH-USER', 'X-Auth-Request-Email', 'X-Authenticated-User'],
  ...['SSL-Client-Cert', 'X-SSL-Client-S-DN', 'X-Client-Cert', 'Client-Cert', 'X-Real-Port', 'X-ProxyUser-IP'],
];

test("a client's claim to speak for others is neither believed nor passed on", async () => {
  const address = nextAddress();
  using client = await RawClient.connect(gateway, address);
  const spoofed = [
    'X-Forwarded-For: 1.1.1.1',
    'x_forwarded_for: 1.1.1.2',
    'X-Real-IP: 1.1.1.3',
    'Forwarded: for=1.1.1.4',
    'True-Client-IP: 1.1.1.5',
    'X-Client-IP: 1.1.1.6',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: evil.example',
    ...spokenFor.map((name) => `${name}: evil`),
    ...spokenFor.map((name) => `${name.replaceAll('-', '_')}: evil`),
    'X-Client-Version: 7',
    'Idempotency-Key: 1',
  ].join('\r\n');

  await client.send(`GET /spoofed HTTP/1.1\r\n${head}${spoofed}\r\n\r\n`).answer();

  const { rawHeaders = [], headers } = upstream.received.find(({ url }) => url === '/spoofed') ?? {};
  assert.equal(rawHeaders.join(' ').includes('1.1.1.'), false, rawHeaders.join(' '));
  assert.equal(rawHeaders.join(' ').includes('evil'), false, rawHeaders.join(' '));
  assert.deepEqual([headers?.['x-client-version'], headers?.['idempotency-key']], ['7', '1']);
  assert.equal(headers?.['x-forwarded-for'], address);
  assert.equal(headers?.['x-forwarded-proto'], 'http');
  assert.equal(await usedBy(address), 1);
});

test('connections beyond the limit are closed, and the others go on', async () => {
  await using small = await TestGateway.start({ ...settings, upstream: upstream.url, sizes: { connections: 3 } });
  using one = await RawClient.connect(small);
  using two = await RawClient.connect(small);
  using three = await RawClient.connect(small);
  for (const client of [one, two, three]) await client.send(`GET / HTTP/1.1\r\n${head}\r\n`).answer();

  using four = await RawClient.connect(small);
  await four.closed;
  const answer = await one.send(`GET / HTTP/1.1\r\n${head}\r\n`).answer();
  two[Symbol.dispose]();
  await eventually('there is room again', async () => {
    using five = await RawClient.connect(small);
    const answered = five.send(`GET / HTTP/1.1\r\n${head}\r\n`).answer();
    return await answered.then(({ status }) => status === 200).catch(() => false);
  });

  assert.equal(four.received, '');
  assert.equal(answer.status, 200);
  const rejected = (await small.metrics()).get('gantry_gateway_connections_rejected_total') ?? 0;
  assert.ok(rejected >= 1, String(rejected));
});

test('silent connections of one address leave room for others', async () => {
  await using small = await TestGateway.start({ ...settings, upstream: upstream.url, sizes: { connections: 200 } });
  const silent = Array.from({ length: 200 }, () => small.connect('127.8.0.1'));
  await eventually('what is too much is closed', () => silent.filter(({ closed }) => closed).length === 150);

  const answer = await small.request('/', { from: '127.8.0.2' });

  for (const socket of silent) socket.destroy();
  assert.equal(answer.status, 200);
  await eventually('there is room again', async () => {
    return (await small.request('/', { from: '127.8.0.1' }).catch(() => undefined))?.status === 200;
  });
});

test('a request for an absolute address goes to the host of the address', async () => {
  using client = await RawClient.connect(gateway);

  await client.send(`GET http://absolute.example:81/absolute HTTP/1.1\r\nHost: other.example\r\n\r\n`).answer();

  const { headers } = upstream.received.find(({ url }) => url === '/absolute') ?? {};
  assert.deepEqual([headers?.host, headers?.['x-forwarded-host']], ['absolute.example:81', 'absolute.example:81']);
});

test('connections and requests that are over are all accounted for', async () => {
  await eventually('nothing is open', async () => {
    const metrics = await gateway.metrics();
    const names = ['gantry_gateway_requests_under_way', 'gantry_gateway_connections_open'];
    return names.every((name) => metrics.get(name) === 0);
  });
});
