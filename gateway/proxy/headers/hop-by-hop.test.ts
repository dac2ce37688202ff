import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { RawUpstream } from '@gantry/testing/gateway/raw-upstream.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';

let received = '';
let answering = '';
const upstream = await RawUpstream.start((socket, text) => {
  received = text;
  socket.write(answering, 'latin1');
});
const gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 10_000 } });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** The headers that the upstream receives, one per line. */
async function passedOn(...headers: readonly string[]): Promise<string[]> {
  answering = 'HTTP/1.1 204 No Content\r\n\r\n';
  using client = await RawClient.connect(gateway);
  await client.send(`GET /headers HTTP/1.1\r\nHost: host.example\r\n${headers.join('\r\n')}\r\n\r\n`).answer();
  return received.split('\r\n\r\n', 1)[0]!.split('\r\n').slice(1);
}

/** The head that the client gets when the upstream answers with these headers. */
async function answeredWith(...headers: readonly string[]): Promise<string> {
  answering = `HTTP/1.1 200 Fine by me\r\n${headers.join('\r\n')}\r\nContent-Length: 2\r\n\r\nok`;
  using client = await RawClient.connect(gateway);
  const head = await client.send('GET /headers HTTP/1.1\r\nHost: a\r\n\r\n').until('\r\n\r\n');
  await client.until('ok');
  return head;
}

test('a request keeps its Host, its own headers, their order and their spelling', async () => {
  const lines = await passedOn('X-One: 1', 'Accept: application/json', 'x-two: 2', 'X-One: 3', 'Cookie: a=b');

  assert.ok(lines.includes('host: host.example'));
  const own = lines.filter((line) => !/^(?:host|connection|x-forwarded-\w+):/.test(line));
  assert.deepEqual(own, ['X-One: 1', 'Accept: application/json', 'x-two: 2', 'X-One: 3', 'Cookie: a=b']);
});

test('an answer without content has no length', async () => {
  answering = 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-Kept: 1\r\n\r\n';
  using client = await RawClient.connect(gateway);

  const { status, headers } = await client.send('GET /none HTTP/1.1\r\nHost: a\r\n\r\n').answer();

  assert.deepEqual([status, headers.get('content-length'), headers.get('x-kept')], [204, undefined, '1']);
});

test('headers for the gateway alone are not passed on', async () => {
  const lines = await passedOn(
    'Connection: X-Mine, keep-alive',
    'X-Mine: 1',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic c2VjcmV0',
    'TE: trailers',
    'Trailer: X-Checksum',
    'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    'X-Kept: 1',
  );

  const names = lines.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
  assert.deepEqual(
    names.toSorted(),
    ['host', 'connection', 'x-kept', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'].toSorted(),
  );
  assert.ok(lines.includes('connection: keep-alive'));
});

test('a client cannot give the upstream another method or path than those that were judged', async () => {
  const overrides = [
    ...['X-HTTP-Method-Override: DELETE', 'X-HTTP-Method: DELETE', 'X-Method-Override: DELETE'],
    ...['X-Original-URL: /admin', 'X-Rewrite-URL: /admin', 'X_HTTP_METHOD_OVERRIDE: DELETE', 'X_Original-URL: /admin'],
  ];

  const dropped = await passedOn(...overrides, 'X-Kept: 1');

  const overriding = (lines: readonly string[]) => lines.filter((line) => /^x.*(?:method|url)/i.test(line));
  assert.deepEqual(overriding(dropped), []);
  assert.ok(dropped.includes('X-Kept: 1'));
});

test('a client cannot write a header that was judged in another spelling', async () => {
  await using strict = await TestGateway.start({ upstream: upstream.url, credentials: { headers: ['PRIVATE-TOKEN'] } });
  using client = await RawClient.connect(strict);
  const spellings = [
    ...['Content_Type: text/plain', 'Content_Length: 7', 'CONTENT_ENCODING: gzip', 'Transfer_Encoding: chunked'],
    ...['Private_Token: other', 'X_Kept: 1'],
  ];
  answering = 'HTTP/1.1 204 No Content\r\n\r\n';

  await client.send(`GET /headers HTTP/1.1\r\nHost: a\r\n${spellings.join('\r\n')}\r\n\r\n`).answer();

  assert.deepEqual(received.match(/^.*_.*:.*/gm), ['X_Kept: 1']);
});

test('a client cannot have the headers removed that the upstream is told by the gateway', async () => {
  const lines = await passedOn('Connection: close, X-Forwarded-For, Host, Authorization', 'Authorization: Bearer x');

  assert.ok(lines.includes('x-forwarded-for: 127.0.0.1'), lines.join('\n'));
});

test('only the first of two credentials is passed on, which is the one that was judged', async () => {
  answering = 'HTTP/1.1 204 No Content\r\n\r\n';
  await using open = await TestGateway.start({ upstream: upstream.url, identities: { unknown: 'address' } });
  using client = await RawClient.connect(open);

  await client
    .send('GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer one\r\nAuthorization: Bearer two\r\n\r\n')
    .answer();

  assert.match(received, /Bearer one/);
  assert.doesNotMatch(received, /Bearer two/);
});

test('an answer keeps its reason, its own headers, and all of those that come several times', async () => {
  const head = await answeredWith('X-One: 1', 'Set-Cookie: a=1', 'Set-Cookie: b=2', 'Server: theirs', 'ETag: "1"');

  assert.match(head, /^HTTP\/1.1 200 Fine by me\r\n/);
  for (const line of ['x-one: 1', 'set-cookie: a=1', 'set-cookie: b=2', 'server: theirs', 'etag: "1"']) {
    assert.ok(head.toLowerCase().includes(`\r\n${line}\r\n`), `${line} is missing in\n${head}`);
  }
});

test("the upstream's headers for the gateway alone are not passed on, nor its own rate limit", async () => {
  const head = await answeredWith(
    'Connection: X-Mine, keep-alive',
    'X-Mine: 1',
    'Keep-Alive: timeout=5',
    'Proxy-Authenticate: Basic',
    'Upgrade: h2c',
    'X-RateLimit-Remaining: 999999',
    'X-RateLimit-Other: 999999',
  );

  assert.doesNotMatch(head, /x-mine|timeout=5|proxy-authenticate|upgrade|999999/i);
  assert.equal(head.match(/x-ratelimit-remaining/gi)?.length, 1);
});

test('bytes that are not ASCII pass in both directions as they are', async () => {
  const lines = await passedOn('X-Name: caf\xe9 \xe6\x97\xa5');
  const head = await answeredWith('X-Name: caf\xe9 \xe6\x97\xa5', 'Content-Disposition: attachment; filename=\xc3\xa9');

  assert.ok(lines.includes('X-Name: caf\xe9 \xe6\x97\xa5'));
  assert.ok(head.includes('caf\xe9 \xe6\x97\xa5') && head.includes('filename=\xc3\xa9'), JSON.stringify(head));
});

test('a reason phrase that is not ASCII does not spoil the answer', async () => {
  answering = 'HTTP/1.1 200 D\xe9j\xe0 vu \xe6\x97\xa5\r\nContent-Length: 2\r\n\r\nok';
  using client = await RawClient.connect(gateway);

  const answer = await client.send('GET /reason HTTP/1.1\r\nHost: a\r\n\r\n').answer();

  assert.deepEqual([answer.status, answer.body], [200, 'ok']);
});

for (const [what, answer] of Object.entries({
  'a length and chunks':
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!',
  'a coding that nobody takes off': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'no HTTP': 'SSH-2.0-OpenSSH_9.2p1\r\n',
  'headers without an end': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
  'a NUL in a header': 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok',
})) {
  test(`an upstream that answers with ${what} is 502`, async () => {
    answering = answer;
    using client = await RawClient.connect(gateway);

    const { status, headers, body } = await client.send('GET /broken HTTP/1.1\r\nHost: a\r\n\r\n').answer();

    assert.equal(status, 502, body);
    assert.match(body, /^\{"message":/);
    assert.ok(headers.has('x-ratelimit-used'));
  });
}

test('informational answers of an upstream are not passed on', async () => {
  answering =
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  using client = await RawClient.connect(gateway);

  const answer = await client.send('GET /hints HTTP/1.1\r\nHost: a\r\n\r\n').answer();

  assert.deepEqual([answer.status, answer.body], [200, 'ok']);
});
