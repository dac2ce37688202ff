import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, type Request, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

/** The specification's numbers, but for the quota and the CPU time, which would refuse first on a slow machine. */
const gateway = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1_000_000 },
  secondary: { cpu: { totalSeconds: 1000, graphqlSeconds: 1000 } },
});
after(async () => await gateway[Symbol.asyncDispose]());

/** Few points. */
const small = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1_000_000 },
  secondary: {
    restPoints: { limit: 20 },
    graphqlPoints: { limit: 20 },
    cpu: { totalSeconds: 1000, graphqlSeconds: 1000 },
    points: { 'GET /expensive/{thing}': 15, 'POST /cheap': 0 },
  },
});
after(async () => await small[Symbol.asyncDispose]());

/** Little CPU time, in short windows. */
const busy = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1_000_000 },
  secondary: { cpu: { totalSeconds: 2, graphqlSeconds: 1 }, windowSeconds: 5 },
});
after(async () => await busy[Symbol.asyncDispose]());

/** Little content, in short windows. */
const quiet = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1_000_000 },
  secondary: {
    windowSeconds: 2,
    contentPerMinute: { limit: 3 },
    contentPerHour: { limit: 5 },
    content: [
      { route: 'POST /repos/{owner}/{repo}/issues' },
      { route: 'POST /rare', perMinute: 1 },
      { route: 'POST /rarer', perHour: 1 },
    ],
  },
});
after(async () => await quiet[Symbol.asyncDispose]());

/** Two requests at once, and short timeouts. */
const narrow = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1_000_000 },
  secondary: { concurrent: { limit: 2 }, cpu: { totalSeconds: 1000 } },
  timeouts: { upstreamHeadersMs: 1500 },
});
after(async () => await narrow[Symbol.asyncDispose]());

let addresses = 0;
function newCaller(): string {
  addresses += 1;
  return `127.2.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

async function underWay(of: TestGateway, from: string): Promise<number> {
  return (await askCaller(of.adminSocket, `ip:${from}`)).underWay;
}

async function windowsOf(of: TestGateway, from: string): Promise<Record<string, number>> {
  const { windows } = await askCaller(of.adminSocket, `ip:${from}`);
  return Object.fromEntries(windows.map(({ name, used }) => [name, used]));
}

/** The end of a connection is told a moment later. */
async function untilNoneUnderWay(of: TestGateway, from: string): Promise<void> {
  await eventually('nothing is under way', async () => (await underWay(of, from)) === 0);
}

function isSecondary({ status, statusText, headers, body }: Answer): void {
  assert.deepEqual([status, statusText], [403, 'Secondary rate limit exceeded']);
  assert.ok(Number(headers['retry-after']) >= 1);
  assert.match(body, /secondary rate limit/);
}

function graphql(query: string): Request {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }) };
}

test('a caller has 100 requests under way at once, REST and GraphQL together', async () => {
  const [from, other] = [newCaller(), newCaller()];
  const rest = upstream.hold('/held');
  const graph = upstream.hold('/graphql');
  const held = [
    ...Array.from({ length: 60 }, async () => await gateway.request('/held', { from })),
    ...Array.from({ length: 40 }, async () => await gateway.request('/graphql', { ...graphql('{ a }'), from })),
  ];
  await upstream.until(() => rest.waiting() === 60 && graph.waiting() === 40);

  const refused = await gateway.request('/user', { from });
  const graphRefused = await gateway.request('/graphql', { ...graphql('{ a }'), from });
  const ofOther = await gateway.request('/user', { from: other });
  const during = await underWay(gateway, from);
  rest.release();
  graph.release();
  const answers = await Promise.all(held);
  const after_ = await gateway.request('/user', { from });

  isSecondary(refused);
  isSecondary(graphRefused);
  assert.equal(refused.headers['retry-after'], '1');
  assert.equal(refused.headers['x-ratelimit-used'], '60');
  assert.equal(during, 100);
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.deepEqual([ofOther.status, after_.status], [200, 200]);
  assert.equal(await underWay(gateway, from), 0);
  upstream.on('/graphql', (_request, response) => void response.end('{}'));
});

test('a secondary limit may be off', async () => {
  const quota = { limit: 'off' } as const;
  await using open = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 10_000 },
    secondary: {
      concurrent: quota,
      restPoints: quota,
      graphqlPoints: quota,
      contentPerMinute: quota,
      contentPerHour: quota,
      cpu: { totalSeconds: 'off', graphqlSeconds: 'off' },
    },
  });
  const from = newCaller();

  const answers = await Promise.all(
    Array.from({ length: 600 }, async () => await open.request('/repos/o/r/issues', { method: 'POST', from })),
  );

  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
});

test('a request that takes long is charged before it has ended', async () => {
  await using tight = await TestGateway.start({ upstream: upstream.url, secondary: { cpu: { totalSeconds: 1 } } });
  const from = newCaller();
  const long = upstream.hold('/long');
  const waiting = tight.request('/long', { from });
  await upstream.until(() => long.waiting() === 1);

  await eventually('others are refused', async () => (await tight.request('/user', { from })).status === 403);
  const stillWaiting = long.waiting();
  long.release();
  await waiting;

  assert.equal(stillWaiting, 1);
});

test('GraphQL requests without their bodies count as pending', async () => {
  await using tight = await TestGateway.start({ upstream: upstream.url, secondary: { concurrent: { limit: 3 } } });
  const [from, other] = [newCaller(), newCaller()];
  const head = 'POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n';
  const sockets = Array.from({ length: 3 }, () => tight.connect(from));
  for (const socket of sockets) socket.write(`${head}{"query"`);
  await eventually('all are under way', async () => (await underWay(tight, from)) === 3);

  const refused = await tight.request('/graphql', { ...graphql('{ a }'), from });
  const elsewhere = await tight.request('/graphql', { ...graphql('{ a }'), from: other });
  for (const socket of sockets) socket.destroy();
  await untilNoneUnderWay(tight, from);
  const later = await tight.request('/graphql', { ...graphql('{ a }'), from });

  isSecondary(refused);
  assert.deepEqual([elsewhere.status, later.status], [200, 200]);
});

test('a mutation is decided for all of its points, and spends nothing when they do not fit', async () => {
  await using tight = await TestGateway.start({ upstream: upstream.url, secondary: { graphqlPoints: { limit: 7 } } });
  const from = newCaller();

  const first = await tight.request('/graphql', { ...graphql('mutation { a }'), from });
  const second = await tight.request('/graphql', { ...graphql('mutation { a }'), from });
  const query = await tight.request('/graphql', { ...graphql('{ a }'), from });

  assert.deepEqual([first.status, query.status], [200, 200]);
  isSecondary(second);
  assert.equal((await windowsOf(tight, from))['points GraphQL'], 6);
  assert.equal(query.headers['x-ratelimit-used'], '2');
});

/** Every way in which a request can end; each is done more often than fits at once. */
const ends: readonly (readonly [how: string, work: (from: string) => Promise<unknown>])[] = [
  ['an answer', async (from) => await narrow.request('/user', { from })],
  ['an answer to a mutation', async (from) => await narrow.request('/graphql', { ...graphql('{ a }'), from })],
  ['not modified', async (from) => await narrow.request('/rate_limit', { from, headers: { 'if-none-match': '*' } })],
  ['a wrong credential', async (from) => await narrow.request('/user', { from, token: 'x' })],
  [
    'an unknown version',
    async (from) => await narrow.request('/x', { from, headers: { 'x-github-api-version': '1' } }),
  ],
  ['a path that cannot be read', async (from) => await narrow.request('/a\\b', { from })],
  [
    'a client that leaves before the answer',
    async (from) => {
      const leave = new AbortController();
      const before = upstream.count('/silent');
      const left = narrow.request('/silent', { from, signal: leave.signal }).catch(() => undefined);
      await upstream.until(() => upstream.count('/silent') > before);
      leave.abort();
      await left;
    },
  ],
  [
    'a client that leaves in the middle of the answer',
    async (from) => {
      const leave = new AbortController();
      const incoming = await narrow.open('/endless', { from, signal: leave.signal });
      await once(incoming, 'data');
      incoming.once('error', () => undefined);
      leave.abort();
    },
  ],
  [
    'a client that leaves in the middle of its body',
    async (from) => {
      const socket = narrow.connect(from);
      socket.write('POST /uploaded HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nbeginning');
      await eventually('it is under way', async () => (await underWay(narrow, from)) === 1);
      socket.destroy();
    },
  ],
  [
    'a client that leaves in the middle of a long body',
    async (from) => {
      const before = upstream.count('/uploaded');
      const socket = narrow.connect(from);
      socket.write('POST /uploaded HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n');
      socket.write('x'.repeat(1_500_000));
      await upstream.until(() => upstream.count('/uploaded') > before);
      socket.destroy();
    },
  ],
  [
    'a client that leaves in the middle of a GraphQL body',
    async (from) => {
      const socket = narrow.connect(from);
      socket.write('POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"query"');
      await once(socket, 'ready');
      await narrow.request('/zen', { from });
      socket.destroy();
    },
  ],
  ['an upstream that hangs up', async (from) => await narrow.request('/gone', { from })],
  [
    'an upstream that hangs up in the middle of its answer',
    async (from) => await assert.rejects(narrow.request('/half', { from })),
  ],
  ['an upstream that says nothing', async (from) => await narrow.request('/silent', { from })],
  ['an upstream that stops', async (from) => await assert.rejects(narrow.request('/stops', { from }))],
  ['an upgrade that is declined', async (from) => await upgraded(from, '/user')],
  ['an upgrade that ends with the client', async (from) => (await upgraded(from, '/socket')).destroy()],
  [
    'an upgrade that ends with the upstream',
    async (from) => {
      const socket = await upgraded(from, '/socket');
      socket.write('end');
      await once(socket.resume(), 'close');
    },
  ],
  ['an upgrade without a credential that is known', async (from) => await upgraded(from, '/socket', 'Bearer x')],
];
upstream.on('/silent', () => undefined);
upstream.on('/endless', (_request, response) => void response.write('beginning'));
upstream.on('/uploaded', async (request, response) => void response.end(await text(request)));
upstream.on('/gone', (request) => void request.socket.destroy());
upstream.on('/half', (request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('half', () => request.socket.destroy());
});
upstream.on('/stops', (_request, response) => void response.writeHead(200, { 'content-length': '100' }).write('half'));
upstream.onUpgrade = (request, socket) => {
  if (request.url === '/user') {
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
    return;
  }
  socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
  socket.on('data', (chunk) => (String(chunk) === 'end' ? socket.destroy() : socket.write(chunk)));
  socket.on('error', () => socket.destroy());
};

/** A connection that is upgraded to another protocol, after the head of the answer. */
async function upgraded(from: string, path: string, authorization?: string) {
  const socket = narrow.connect(from);
  const credential = authorization === undefined ? '' : `authorization: ${authorization}\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n${credential}\r\n`);
  await once(socket, 'data');
  return socket;
}

for (const [how, work] of ends) {
  test(`the place is given back: ${how}`, async () => {
    const from = newCaller();

    for (let count = 0; count < 3; count += 1) {
      await work(from);
      await untilNoneUnderWay(narrow, from);
    }

    assert.equal(await underWay(narrow, from), 0);
    assert.equal((await narrow.metrics()).get('gantry_gateway_requests_under_way'), 0);
  });
}

test('an upgrade is charged for the time until its answer, not for the time that it is used', async () => {
  const from = newCaller();
  const socket = await upgraded(from, '/socket');
  const answered = await windowsOf(narrow, from);
  await sleep(1500);
  socket.destroy();
  await untilNoneUnderWay(narrow, from);

  const ended = await windowsOf(narrow, from);

  assert.ok((ended['cpu'] ?? 0) > 0);
  assert.equal(ended['cpu'], answered['cpu']);
});

test('an upgraded connection keeps its place until it ends', async () => {
  const from = newCaller();
  const one = await upgraded(from, '/socket');
  const other = await upgraded(from, '/socket');

  const refused = await narrow.request('/user', { from });
  const counted = (await narrow.metrics()).get('gantry_gateway_requests_under_way');
  one.destroy();
  other.destroy();
  await untilNoneUnderWay(narrow, from);
  const admitted = await narrow.request('/user', { from });

  isSecondary(refused);
  assert.equal(counted, 2);
  assert.equal(admitted.status, 200);
});

const costs: readonly (readonly [request: string, times: number, endpoint: string])[] = [
  ['GET /users/a', 20, 'GET /users/{}'],
  ['HEAD /users/a', 20, 'HEAD /users/{}'],
  ['OPTIONS /users/a', 20, 'OPTIONS /users/{}'],
  ['POST /user/keys', 4, 'POST /user/keys'],
  ['PATCH /users/a', 4, 'PATCH /users/{}'],
  ['PUT /users/a', 4, 'PUT /users/{}'],
  ['DELETE /users/a', 4, 'DELETE /users/{}'],
  ['PROPFIND /users/a', 4, 'OTHER /users/{}'],
  ['GET /expensive/thing', 1, 'GET /expensive/{}'],
];
for (const [written, times, endpoint] of costs) {
  test(`${written} passes ${times} times with 20 points`, async () => {
    const from = newCaller();
    const [method = '', path = ''] = written.split(' ');
    const answers: Answer[] = [];

    for (let count = 0; count < times + 1; count += 1) answers.push(await small.request(path, { method, from }));

    assert.deepEqual(
      answers.map(({ status }) => status),
      [...Array<number>(times).fill(200), 403],
    );
    const last = answers.at(-1)!;
    assert.equal(last.statusText, 'Secondary rate limit exceeded');
    assert.equal(last.headers['x-ratelimit-used'], String(times));
    assert.ok(`points ${endpoint}` in (await windowsOf(small, from)));
  });
}

test('an endpoint is a method and a template: the query, the letters and the names in it do not count', async () => {
  const from = newCaller();
  for (const path of ['/users/a', '/users/b?page=2', '/USERS/c', '/users/d/', '//users/e', '/users/%66']) {
    await small.request(path, { from });
  }
  for (const path of ['/users', '/users/a/repos', '/never/heard/of', '/never/heard/of/this']) {
    await small.request(path, { from });
  }
  await small.request('/cheap', { method: 'POST', from });

  const windows = await windowsOf(small, from);
  const points = Object.entries(windows).filter(([name]) => name.startsWith('points'));
  assert.deepEqual(Object.fromEntries(points), {
    'points GET /users/{}': 6,
    'points GET /users': 1,
    'points GET /users/{}/repos': 1,
    'points GET /**': 2,
  });
});

const queries: readonly (readonly [what: string, request: Request, points: number])[] = [
  ['a query', graphql('{ viewer { login } }'), 1],
  ['a named query', graphql('query A { a }'), 1],
  ['a mutation', graphql('mutation { a }'), 5],
  ['a mutation after a query', graphql('query A { a } mutation B { b }'), 5],
  ['a body that is no JSON', { method: 'POST', body: 'query', headers: { 'content-type': 'application/json' } }, 5],
  ['a batch', { method: 'POST', body: '[{"query":"{a}"}]', headers: { 'content-type': 'application/json' } }, 5],
  ['another method with a mutation', { ...graphql('mutation { a }'), method: 'PUT' }, 5],
  ['a compressed body', { ...graphql('{ a }'), headers: { 'content-encoding': 'gzip' } }, 5],
  ['no body', { method: 'POST' }, 5],
  ['a body of length 0', { method: 'POST', headers: { 'content-length': '0' } }, 5],
  ['GET with a query', { method: 'GET' }, 5],
];
for (const [what, request, points] of queries) {
  test(`GraphQL: ${what} costs ${points}, and is passed on as it is`, async () => {
    const from = newCaller();
    upstream.on('/graphql', async (incoming, response) => void response.end(await text(incoming)));

    const path = what.startsWith('GET') ? '/graphql?query=%7Ba%7D' : '/graphql';
    const answer = await small.request(path, { ...request, from });

    assert.deepEqual([answer.status, answer.body], [200, String(request.body ?? '')]);
    assert.equal(answer.headers['x-ratelimit-resource'], 'graphql');
    assert.equal((await windowsOf(small, from))['points GraphQL'], points);
  });
}

test('GraphQL has one window of points, whatever its path', async () => {
  const from = newCaller();
  const statuses: number[] = [];
  upstream.on('/api/graphql', (_request, response) => void response.end('{}'));

  for (const path of ['/graphql', '/api/graphql', '/graphql/', '//GraphQL', '/graphql']) {
    statuses.push((await small.request(path, { ...graphql('mutation { a }'), from })).status);
  }
  const rest = await small.request('/user', { from });

  assert.deepEqual(statuses, [200, 200, 200, 200, 403]);
  assert.equal(rest.status, 200);
});

/** A request that the upstream works on for a while. */
async function work(path: string, seconds: number, request: Request): Promise<Answer> {
  upstream.on(path, async (_request, response) => {
    response.write('beginning');
    await sleep(seconds * 1000);
    response.end();
  });
  return await busy.request(path, request);
}

test('the time of the upstream until its answer ends is counted, and refuses until the window ends', async () => {
  const from = newCaller();
  const answers = [await work('/work', 0.4, { from }), await work('/work', 0.4, { from })];
  const quick = await busy.request('/user', { from });
  await Promise.all([work('/work', 0.65, { from }), work('/other', 0.65, { from })]);

  const refused = await busy.request('/user', { from });
  const wait = Number(refused.headers['retry-after']);
  const counted = (await windowsOf(busy, from))['cpu'] ?? 0;
  await sleep(wait * 1000);
  const admitted = await busy.request('/user', { from });

  assert.deepEqual(
    [...answers, quick].map(({ status }) => status),
    [200, 200, 200],
  );
  isSecondary(refused);
  assert.ok(wait >= 1 && wait <= 6, String(wait));
  assert.ok(counted >= 2050 && counted < 4100, `${counted} ms`);
  assert.equal(admitted.status, 200);
});

test('GraphQL has less of the time, and REST goes on when that is used up', async () => {
  const from = newCaller();
  for (const seconds of [0.2, 0.9]) await work('/graphql', seconds, { ...graphql('{ a }'), from });

  const refused = await busy.request('/graphql', { ...graphql('{ a }'), from });
  const rest = await busy.request('/user', { from });

  isSecondary(refused);
  assert.equal(rest.status, 200);
});

test('content has a limit per minute and one per hour, for all endpoints together', async () => {
  const from = newCaller();
  const post = { method: 'POST', from };
  const first: number[] = [];
  for (const repo of ['a', 'b', 'c', 'd']) first.push((await quiet.request(`/repos/o/${repo}/issues`, post)).status);
  const reading = await quiet.request('/repos/o/a/issues', { from });
  const refused = await quiet.request('/rare', post);
  await sleep(Number(refused.headers['retry-after']) * 1000);
  const second: number[] = [];
  for (const path of ['/rare', '/repos/o/a/issues', '/repos/o/b/issues']) {
    second.push((await quiet.request(path, post)).status);
  }
  const forHour = await quiet.request('/repos/o/a/issues', post);

  assert.deepEqual(first, [200, 200, 200, 403]);
  assert.equal(reading.status, 200);
  isSecondary(refused);
  assert.deepEqual(second, [200, 200, 403]);
  assert.ok(Number(forHour.headers['retry-after']) > 3500, 'the hour is meant');
});

test('an endpoint may have a lower limit of content of its own', async () => {
  const from = newCaller();
  const post = { method: 'POST', from };

  const rare = [await quiet.request('/rare', post), await quiet.request('/rare', post)];
  const rarer = [await quiet.request('/rarer', post), await quiet.request('/rarer', post)];

  assert.deepEqual(
    [...rare, ...rarer].map(({ status }) => status),
    [200, 403, 200, 403],
  );
  assert.ok(Number(rare[1]?.headers['retry-after']) <= 3);
  assert.ok(Number(rarer[1]?.headers['retry-after']) > 3500);
});

test('by default the 81st creation in a minute is refused', async () => {
  const from = newCaller();
  const statuses: number[] = [];

  for (let count = 0; count < 81; count += 1) {
    const path = `/repos/o/${count % 2 === 0 ? 'r/issues' : 'r/pulls'}`;
    statuses.push((await gateway.request(path, { method: 'POST', from })).status);
  }

  assert.deepEqual(statuses, [...Array<number>(80).fill(200), 403]);
});

test('by default an endpoint is refused after 900 points', async () => {
  const from = newCaller();
  const statuses = new Map<number, number>();

  for (let count = 0; count < 181; count += 1) {
    const { status } = await gateway.request('/user/keys', { method: 'POST', from });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }

  assert.deepEqual(
    [...statuses],
    [
      [200, 180],
      [403, 1],
    ],
  );
});

test('by default GraphQL is refused after 2000 points', async () => {
  const from = newCaller();
  upstream.on('/graphql', (_request, response) => void response.end('{}'));
  const statuses = new Map<number, number>();

  for (let count = 0; count < 401; count += 1) {
    const { status } = await gateway.request('/graphql', { ...graphql('mutation { a }'), from });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }

  assert.deepEqual(
    [...statuses],
    [
      [200, 400],
      [403, 1],
    ],
  );
});

test('while the gateway stands still its requests under way use up no CPU time', async () => {
  const stalledMs = 4000;
  await using stalling = await TestGateway.start({
    upstream: upstream.url,
    secondary: { cpu: { totalSeconds: 1000 } },
  });
  const [from, path, requests] = [newCaller(), `/stalled/${randomUUID()}`, 10];
  const held = upstream.hold(path);
  const startedAt = performance.now();
  const answers = Array.from({ length: requests }, async () => await stalling.request(path, { from }));
  await upstream.until(() => held.waiting() === requests);

  stalling.signal('SIGSTOP');
  await sleep(stalledMs);
  stalling.signal('SIGCONT');
  held.release();
  await Promise.all(answers);
  await untilNoneUnderWay(stalling, from);
  const wentOnMs = performance.now() - startedAt - stalledMs;
  const { cpu = 0 } = await windowsOf(stalling, from);

  // A tenth of a second counts of a stall.
  assert.ok(cpu > 0 && cpu <= requests * (wentOnMs + 150), `${cpu} ms of ${wentOnMs} ms`);
});
