import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { CATEGORIES } from '@gantry/limiter/types.ts';
import { type Answer, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const gateway = await TestGateway.start({
  upstream: upstream.url,
  timeouts: { upstreamHeadersMs: 3000 },
  apiVersions: { next: ['2026-01-01'] },
});
after(async () => await gateway[Symbol.asyncDispose]());

async function startWithWindows(windowSeconds: number): Promise<TestGateway> {
  const started = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 3 },
    categories: { core: { windowSeconds }, search: { limit: 1, windowSeconds } },
    secondary: { restPoints: { limit: 10 }, contentPerMinute: { limit: 1 }, windowSeconds },
  });
  after(async () => await started[Symbol.asyncDispose]());
  return started;
}

/** Small limits. */
const small = await startWithWindows(3600);
/** Small limits with short windows. */
const WINDOW_SECONDS = 2;
const short = await startWithWindows(WINDOW_SECONDS);

type Shown = { limit: number; remaining: number; used: number; reset: number; resource: string | undefined };

function shown({ headers }: Pick<Answer, 'headers'>): Shown {
  const number = (name: string): number => Number(headers[`x-ratelimit-${name}`]);
  return {
    limit: number('limit'),
    remaining: number('remaining'),
    used: number('used'),
    reset: number('reset'),
    resource: headers['x-ratelimit-resource'],
  };
}

function nowSeconds(): number {
  return Date.now() / 1000;
}

/** Waits until the clock shows this second, and not longer. */
async function untilSecond(second: number): Promise<void> {
  while (Date.now() < second * 1000) await sleep(second * 1000 - Date.now());
}

let addresses = 0;

/** A caller that no test has used. */
function newCaller(): string {
  addresses += 1;
  return `127.1.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

async function raw(request: string): Promise<Answer> {
  const socket = gateway.connect();
  socket.write(request);
  const answer = await text(socket);
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
  const [line = '', ...lines] = head.split('\r\n');
  const headers = lines.map((each) => each.split(/: ?/, 2) as [string, string]);
  return {
    status: Number(line.split(' ')[1]),
    statusText: '',
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    body,
  };
}

upstream.on('/missing', (_request, response) => void response.writeHead(404).end('{"message":"Not Found"}'));
upstream.on('/failing', (_request, response) => void response.writeHead(500).end('broken'));
upstream.on('/nothing', (_request, response) => void response.writeHead(204).end());
upstream.on('/unchanged', (_request, response) => void response.writeHead(304, { etag: '"x"' }).end());
upstream.on('/gone', (request) => void request.socket.destroy());
upstream.on('/silent', () => undefined);
upstream.on('/own', (_request, response) => {
  response.writeHead(200, { 'X-RateLimit-Limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-other': 'y' }).end();
});

const everyAnswer: readonly (readonly [what: string, status: number, ask: (from: string) => Promise<Answer>])[] = [
  ['an answer', 200, async (from) => await gateway.request('/user', { from })],
  ['an answer to HEAD', 200, async (from) => await gateway.request('/user', { from, method: 'HEAD' })],
  ['an error of the upstream', 404, async (from) => await gateway.request('/missing', { from })],
  ['a failure of the upstream', 500, async (from) => await gateway.request('/failing', { from })],
  ['an answer without a body', 204, async (from) => await gateway.request('/nothing', { from })],
  ['not modified', 304, async (from) => await gateway.request('/unchanged', { from })],
  ['an upstream that hangs up', 502, async (from) => await gateway.request('/gone', { from, method: 'POST' })],
  ['an upstream that says nothing', 504, async (from) => await gateway.request('/silent', { from })],
  ['an answer with such headers of its own', 200, async (from) => await gateway.request('/own', { from })],
  ['a wrong credential', 401, async (from) => await gateway.request('/user', { from, token: 'x' })],
  ['a path that leaves the root', 400, async (from) => await gateway.request('/../x', { from })],
  ['a path that servers read differently', 400, async (from) => await gateway.request('/a\\b', { from })],
  [
    'an unknown version',
    400,
    async (from) => await gateway.request('/x', { from, headers: { 'x-platform-api-version': '1' } }),
  ],
];
for (const [what, status, ask] of everyAnswer) {
  test(`the headers are on ${what}`, async () => {
    const from = newCaller();
    await gateway.request('/first', { from });

    const answer = await ask(from);

    assert.equal(answer.status, status);
    const { reset, ...others } = shown(answer);
    assert.deepEqual(others, { limit: 60, remaining: 58, used: 2, resource: 'core' });
    assert.ok(Number.isInteger(reset) && reset > nowSeconds() + 3000 && reset <= nowSeconds() + 3601, String(reset));
    assert.equal(answer.headers['x-ratelimit-other'], undefined);
    assert.equal(answer.headers['retry-after'], undefined);
  });
}

const unreadable: readonly (readonly [what: string, status: number, request: string])[] = [
  ['a line that is no request', 400, 'GARBAGE\r\n\r\n'],
  ['a request without a host', 400, 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n'],
  ['two lengths', 400, 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
  ['headers without end', 431, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`],
];
for (const [what, status, request] of unreadable) {
  test(`the headers are on the answer to ${what}, which counts on the address`, async () => {
    const before = shown(await gateway.request('/user', { from: '127.0.0.1' }));

    const answer = await raw(request);

    assert.equal(answer.status, status);
    assert.equal(shown(answer).used, before.used + 1);
    assert.equal(shown(answer).reset, before.reset);
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    assert.equal(typeof (JSON.parse(answer.body) as { message: unknown }).message, 'string');
  });
}

/** Asks as a new caller, and again as another one while the machine was too slow for that. */
async function withinOneWindow<T>(
  ask: (from: string) => Promise<T>,
): Promise<{ from: string; started: number; answers: T }> {
  for (let tries = 0; tries < 100; tries += 1) {
    const from = newCaller();
    const started = nowSeconds();
    const answers = await ask(from);
    if (nowSeconds() < started + WINDOW_SECONDS - 0.5) return { from, started, answers };
  }
  throw new Error('no time in which the machine was quick enough');
}

test('when the quota is used up the reset is a whole second, and exactly then the next request passes', async () => {
  const { from, started, answers } = await withinOneWindow(async (from) => {
    const answers: Answer[] = [];
    for (let count = 0; count < 5; count += 1) answers.push(await short.request('/user', { from }));
    return answers;
  });
  const { reset } = shown(answers[0]!);

  await untilSecond(reset - 0.15);
  const before = await short.request('/user', { from });
  const refusedUntil = nowSeconds();
  await untilSecond(reset);
  const at = await short.request('/user', { from });

  assert.ok(Number.isInteger(reset) && reset >= started + WINDOW_SECONDS && reset <= started + 2 * WINDOW_SECONDS + 1);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 403, 403],
  );
  assert.deepEqual(
    answers.map((answer) => shown(answer).remaining),
    [2, 1, 0, 0, 0],
  );
  assert.deepEqual(
    answers.map((answer) => shown(answer).used),
    [1, 2, 3, 3, 3],
  );
  assert.deepEqual(new Set(answers.map((answer) => shown(answer).reset)), new Set([reset]));
  if (refusedUntil < reset) assert.equal(before.status, 403);
  assert.deepEqual([at.status, shown(at).used], [200, 1]);
  assert.ok(shown(at).reset >= reset + WINDOW_SECONDS);
});

test('the same is true of a secondary limit and its retry-after', async () => {
  const ask = async (from: string): Promise<Answer> =>
    await short.request('/repos/o/r/issues', { from, method: 'POST' });
  const { from, answers } = await withinOneWindow(async (from) => {
    await ask(from);
    const asked = nowSeconds();
    return { asked, refused: await ask(from) };
  });
  const { asked, refused } = answers;
  const wait = Number(refused.headers['retry-after']);

  await untilSecond(Math.floor(asked) + wait);
  const again = await ask(from);

  assert.equal(refused.status, 403);
  assert.ok(wait >= 1 && wait <= WINDOW_SECONDS + 1, String(wait));
  assert.equal(again.status, 200);
});

test('windows start with the first request of a caller, not with the clock', async () => {
  const [one, other] = [newCaller(), newCaller()];
  const first = shown(await short.request('/user', { from: one }));
  await sleep(1100);
  const second = shown(await short.request('/user', { from: other }));

  assert.ok(second.reset > first.reset);
});

async function spentBy(from: string): Promise<Record<string, number>> {
  const { windows } = await askCaller(small.adminSocket, `ip:${from}`);
  return Object.fromEntries(
    windows.map(({ name, used }) => [name, used]).filter(([name]) => name !== 'cpu' && name !== 'graphql-cpu'),
  );
}

test('a request that its quota refuses spends nothing else', async () => {
  const from = newCaller();
  for (let count = 0; count < 3; count += 1) await small.request('/zen', { from });
  const spent = await spentBy(from);

  const refused = await small.request('/repos/o/r/issues', { from, method: 'POST' });

  assert.equal(refused.status, 403);
  assert.deepEqual(spent, { core: 3, 'points GET /zen': 3 });
  assert.deepEqual(await spentBy(from), spent);
});

test('a request that a secondary limit refuses spends nothing of the quota', async () => {
  const from = newCaller();
  await small.request('/gists', { from, method: 'POST' });
  const spent = await spentBy(from);

  const refused = await small.request('/repos/o/r/issues', { from, method: 'POST' });
  const passed = await small.request('/user', { from });

  assert.deepEqual([refused.status, shown(refused).used, shown(refused).remaining], [403, 1, 2]);
  assert.deepEqual(spent, { core: 1, 'points POST /gists': 5, 'content-minute': 1, 'content-hour': 1 });
  assert.deepEqual(await spentBy(from), { ...spent, core: 2, 'points GET /user': 1 });
  assert.equal(passed.status, 200);
});

test('a category with a limit of its own has a window of its own', async () => {
  const from = newCaller();

  const first = await small.request('/search/users?q=x', { from });
  const second = await small.request('/search/users?q=x', { from });
  const core = await small.request('/user', { from });

  assert.deepEqual(
    [first, second, core].map(({ status }) => status),
    [200, 403, 200],
  );
  assert.deepEqual([shown(first).resource, shown(first).limit, shown(first).remaining], ['search', 1, 0]);
  assert.deepEqual([shown(second).resource, shown(second).limit, shown(second).remaining], ['search', 1, 0]);
  assert.deepEqual([shown(core).resource, shown(core).used], ['core', 1]);
});

test('GET /rate_limit shows every category, and rate as core', async () => {
  const from = newCaller();
  const { reset } = shown(await gateway.request('/user', { from }));

  const answer = await gateway.request('/rate_limit', { from });
  const { resources, rate } = await gateway.rateLimit({ from });

  assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/json; charset=utf-8']);
  assert.deepEqual(Object.keys(resources), [...CATEGORIES]);
  assert.deepEqual(resources['core'], { limit: 60, used: 1, remaining: 59, reset });
  assert.deepEqual(rate, resources['core']);
  assert.deepEqual(resources['search'], { limit: 60, used: 0, remaining: 60, reset });
  assert.deepEqual(shown(answer), { limit: 60, used: 1, remaining: 59, reset, resource: 'core' });
});

test('GET /rate_limit costs no quota, passes when that is used up, and counts as secondary', async () => {
  const from = newCaller();
  for (let count = 0; count < 4; count += 1) await small.request('/user', { from });

  const statuses: number[] = [];
  const { resources } = await small.rateLimit({ from });
  for (let count = 0; count < 10; count += 1) statuses.push((await small.request('/rate_limit', { from })).status);

  assert.deepEqual([resources['core']?.used, resources['core']?.remaining], [3, 0]);
  assert.deepEqual(statuses, [...Array<number>(9).fill(200), 403], 'ten points in the window, the first one included');
});

test('GET /rate_limit does not open the window of core', async () => {
  const from = newCaller();
  const first = shown(await gateway.request('/rate_limit', { from }));
  await gateway.rateLimit({ from });
  const before = await askCaller(gateway.adminSocket, `ip:${from}`);
  const asked = nowSeconds();

  const { reset, used } = shown(await gateway.request('/user', { from }));

  assert.deepEqual([first.used, first.remaining], [0, 60]);
  assert.deepEqual(
    before.windows.map(({ name }) => name).filter((name) => name === 'core'),
    [],
  );
  assert.equal(used, 1);
  // An hour from this request on, and not from the first look.
  assert.ok(reset >= asked + 3600, `${reset} after ${asked}`);
});

test('the ETag of GET /rate_limit stays while nothing changes, and is answered with 304', async () => {
  const from = newCaller();
  await gateway.request('/user', { from }); // without a window the reset is the end of the hour, which may come
  const first = await gateway.request('/rate_limit', { from });
  const etag = first.headers['etag'] ?? '';
  await sleep(1100); // nothing in it moves with the clock

  const unchanged = await gateway.request('/rate_limit', { from, headers: { 'if-none-match': etag } });
  const weak = await gateway.request('/rate_limit', { from, headers: { 'if-none-match': `"other", W/${etag}` } });
  await gateway.request('/user', { from });
  const changed = await gateway.request('/rate_limit', { from, headers: { 'if-none-match': etag } });

  assert.match(etag, /^"[^"]+"$/);
  assert.deepEqual([unchanged.status, unchanged.body, unchanged.headers['etag']], [304, '', etag]);
  assert.deepEqual(shown(unchanged), shown(first));
  assert.equal(weak.status, 304);
  assert.equal(changed.status, 200);
  assert.notEqual(changed.headers['etag'], etag);
});

test('HEAD /rate_limit is the same without a body, and other methods are the upstream\u2019s', async () => {
  const from = newCaller();

  const get = await gateway.request('/rate_limit', { from });
  const head = await gateway.request('/rate_limit', { from, method: 'HEAD' });
  const post = await gateway.request('/rate_limit', { from, method: 'POST' });

  assert.deepEqual([head.status, head.body, head.headers['etag']], [200, '', get.headers['etag']]);
  assert.equal(head.headers['content-length'], String(get.body.length));
  assert.deepEqual([post.status, shown(post).used], [200, 1]);
  assert.match(post.body, /"url":"\/rate_limit"/);
});

test('GET /rate_limit is known in other spellings of its path', async () => {
  const before = upstream.received.length;

  for (const path of ['//rate_limit', '/./rate_limit', '/x/../rate_limit', '/%72ate_limit', '/rate_limit?x=1']) {
    const from = newCaller();
    const answer = await gateway.request(path, { from });
    assert.deepEqual(
      [answer.status, shown(answer).used, Object.keys(JSON.parse(answer.body) as object)],
      [200, 0, ['resources', 'rate']],
    );
  }

  assert.equal(upstream.received.length, before);
});

test('with the next version of the API source_import is gone', async () => {
  const next = await gateway.rateLimit({ headers: { 'x-platform-api-version': '2026-01-01' } });
  const known = await gateway.rateLimit({ headers: { 'x-platform-api-version': '2022-11-28' } });

  assert.equal('source_import' in next.resources, false);
  assert.equal(Object.keys(next.resources).length, CATEGORIES.length - 1);
  assert.deepEqual(Object.keys(known.resources), [...CATEGORIES]);
});
