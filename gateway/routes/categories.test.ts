import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { CATEGORIES } from '@gantry/limiter/types.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 1_000_000 } });
after(async () => await gateway[Symbol.asyncDispose]());

/** With numbers of its own, as an operator would choose them. */
const own = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 50 },
  basePath: '/api/v3',
  categories: {
    search: { limit: 3, anonymousLimit: 2, windowSeconds: 60 },
    code_search: { limit: 1, windowSeconds: 60, routes: ['GET /search/code', 'GET /repos/{owner}/{repo}/grep'] },
    source_import: { limit: 7, routes: ['* /repos/{owner}/{repo}/import/**'] },
    scim: { limit: 0 },
    graphql: { limit: 'caller' },
  },
  apiVersions: { known: ['2022-11-28', '2024-05-05'], next: ['2026-01-01'] },
});
after(async () => await own[Symbol.asyncDispose]());

let addresses = 0;
function newCaller(): string {
  addresses += 1;
  return `127.3.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

const categories: readonly (readonly [request: string, category: string])[] = [
  ['GET /', 'core'],
  ['GET /user', 'core'],
  ['GET /search/users', 'search'],
  ['HEAD /search/users', 'search'],
  ['GET /search/never-heard-of', 'search'],
  ['POST /search/users', 'core'],
  ['GET /search/code', 'code_search'],
  ['HEAD /search/code', 'code_search'],
  ['GET /searching', 'core'],
  ['POST /graphql', 'graphql'],
  ['GET /graphql', 'graphql'],
  ['POST /api/graphql', 'graphql'],
  ['POST /app-manifests/abc/conversions', 'integration_manifest'],
  ['GET /app-manifests/abc/conversions', 'core'],
  ['POST /repos/o/r/dependency-graph/snapshots', 'dependency_snapshots'],
  ['POST /repos/o/r/code-scanning/sarifs', 'code_scanning_upload'],
  ['POST /repos/o/r/actions/runners/registration-token', 'actions_runner_registration'],
  ['POST /orgs/o/actions/runners/registration-token', 'actions_runner_registration'],
  ['GET /scim/v2/organizations/o/Users', 'scim'],
  ['PATCH /scim/v2/organizations/o/Users/1', 'scim'],
  ['PUT /repos/o/r/import', 'core'],
  // Other spellings of these paths.
  ['GET //search//code', 'code_search'],
  ['GET /./search/./code', 'code_search'],
  ['GET /user/../search/code', 'code_search'],
  ['GET /%73earch/code', 'code_search'],
  ['GET /%73%65arch/%63ode', 'code_search'],
  ['GET /SEARCH/Code', 'code_search'],
  ['GET /search/code/', 'code_search'],
  ['GET /search/code;a=b', 'code_search'],
  ['GET /search;x/code', 'code_search'],
  ['GET /search/code?q=%2F..%2F..%2Fuser', 'code_search'],
  // A format at the end is no other endpoint.
  ['GET /search/code.json', 'code_search'],
  ['GET /search/users.xml', 'search'],
  ['POST /graphql.json', 'graphql'],
  ['POST /repos/o/r/code-scanning/sarifs.json', 'code_scanning_upload'],
  ['GET http://elsewhere/search/code', 'code_search'],
  ['GET http://elsewhere', 'core'],
  ['POST //graphql', 'graphql'],
  ['POST /%67raphql', 'graphql'],
  ['POST /x/%2e%2e/graphql', 'graphql'],
  ['POST /graphql/', 'graphql'],
  // Some servers trim names.
  ['POST /graphql%20', 'graphql'],
  ['POST /%20graphql%20%20/', 'graphql'],
  ['POST /graphql.', 'graphql'],
  ['GET /search%20/code', 'code_search'],
  ['GET /search/code%20', 'code_search'],
  ['GET /search./users..', 'search'],
];
for (const [request, category] of categories) {
  test(`${request} is ${category}`, async () => {
    const [method = '', path = ''] = request.split(' ');

    const answer = await gateway.request(path, { method, from: newCaller() });

    assert.equal(answer.status, 200);
    assert.equal(answer.headers['x-ratelimit-resource'], category);
  });
}

const passed: readonly (readonly [sent: string, received: string])[] = [
  ['/a//b/./c/../d', '/a/b/d'],
  ['/%7euser/%41', '/~user/A'],
  ['/a%2fb', '/a%2Fb'],
  ['/a%20b?x=%20%2f', '/a%20b?x=%20%2f'],
  ['/user?', '/user?'],
  ['/repos/o/r/contents/a%2Fb', '/repos/o/r/contents/a%2Fb'],
  ['/repos/o/r/contents/a;b', '/repos/o/r/contents/a;b'],
  ['/search/code;a=b', '/search/code;a=b'],
  ['http://elsewhere:1/a?b', '/a?b'],
];
for (const [sent, received] of passed) {
  test(`the upstream gets the request as the gateway read it: ${sent} as ${received}`, async () => {
    const before = upstream.received.length;

    const answer = await gateway.request(sent, { from: newCaller() });

    assert.equal(answer.status, 200);
    assert.deepEqual(
      upstream.received.slice(before).map(({ url }) => url),
      [received],
    );
  });
}

const refused = [
  ...['/..', '/a/../../search/code', '/%2e%2e/x', '/a\\..\\search', '/a%5Cb', '/a%00', '/a%', '/a%zz', '/a%0a'],
  ...['/search%2Fcode', '/search%2fusers', '/x%2F..%2Fsearch/code', '/graphql%2F'],
  ...['/a/..;/search/code', '/a/..;x=1/search/code', '/a/b/..;/..;/search/code', '/a/..;%2Fsearch/code'],
  ...['/search/code%3Bx', '/a/..%3B/search/code', '/a/..%3bx%2Fsearch/code'],
  ...['*', 'ftp://host/x'],
];
for (const path of refused) {
  test(`400, because servers would understand different things: ${path}`, async () => {
    const from = newCaller();
    const before = upstream.received.length;

    const answer = await gateway.request(path, { from });

    assert.equal(answer.status, 400);
    assert.equal(answer.headers['x-ratelimit-used'], '1');
    assert.equal(typeof (JSON.parse(answer.body) as { message: unknown }).message, 'string');
    assert.equal(upstream.received.length, before);
  });
}

test('a category without a number is a window of its own with the core limit', async () => {
  await using tight = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 2 } });
  const search = [];
  for (let count = 0; count < 4; count += 1) search.push(await tight.request('/search/users'));
  const { resources } = await tight.rateLimit();
  const core = [];
  for (let count = 0; count < 3; count += 1) core.push(await tight.request('/user'));

  assert.deepEqual(
    search.map(({ status }) => status),
    [200, 200, 403, 403],
  );
  assert.equal(search[3]?.headers['x-ratelimit-limit'], '2');
  assert.deepEqual([search[3]?.headers['x-ratelimit-used'], search[3]?.headers['x-ratelimit-remaining']], ['2', '0']);
  assert.deepEqual([resources['search']?.limit, resources['search']?.used, resources['core']?.used], [2, 2, 0]);
  assert.deepEqual(
    core.map(({ status }) => status),
    [200, 200, 403],
  );
});

test('requests of a category that is off count in core', async () => {
  const categories = { search: { limit: 'off' } } as const;
  await using tight = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 2 }, categories });

  const search = await tight.request('/search/users');
  const code = await tight.request('/search/code');
  const core = await tight.request('/user');
  const again = await tight.request('/search/users');
  const { resources } = await tight.rateLimit();

  assert.deepEqual(
    [search, code, core, again].map(({ status, headers }) => [
      status,
      headers['x-ratelimit-resource'],
      headers['x-ratelimit-used'],
    ]),
    [
      [200, 'core', '1'],
      [200, 'code_search', '1'],
      [200, 'core', '2'],
      [403, 'core', '2'],
    ],
  );
  assert.deepEqual(resources['search'], resources['core']);
});

test('a category with a number refuses by it, with another one for callers without a credential', async () => {
  const from = newCaller();

  const search = [];
  for (let count = 0; count < 3; count += 1) search.push(await own.request('/api/v3/search/users', { from }));
  const code = [];
  for (const path of ['/api/v3/search/code', '/api/v3/repos/o/r/grep']) code.push(await own.request(path, { from }));
  const scim = await own.request('/api/v3/scim/v2/Users', { from });
  const { resources } = await own.rateLimitAt('/api/v3/rate_limit', { from });

  assert.deepEqual(
    search.map(({ status }) => status),
    [200, 200, 403],
  );
  assert.equal(search[2]?.headers['x-ratelimit-limit'], '2');
  assert.deepEqual(
    code.map(({ status, headers }) => [status, headers['x-ratelimit-resource']]),
    [
      [200, 'code_search'],
      [403, 'code_search'],
    ],
  );
  assert.deepEqual([scim.status, scim.headers['x-ratelimit-remaining']], [403, '0']);
  assert.deepEqual(resources['core'], { ...resources['core'], limit: 50, used: 0 });
  assert.deepEqual([resources['search']?.remaining, resources['code_search']?.remaining], [0, 0]);
});

test('below a base path everything is found, and paths outside count as core', async () => {
  const seen: unknown[] = [];
  for (const path of [
    '/api/v3/user',
    '/API/v3/search/users',
    '/search/users',
    '/api/v3x/search/users',
    '/rate_limit',
  ]) {
    const from = newCaller();
    const { status, headers } = await own.request(path, { from });
    const { windows } = await askCaller(own.adminSocket, `ip:${from}`);
    seen.push([
      path,
      status,
      headers['x-ratelimit-resource'],
      windows.find(({ name }) => name.startsWith('points'))?.name,
    ]);
  }

  assert.deepEqual(seen, [
    ['/api/v3/user', 200, 'core', 'points GET /user'],
    ['/API/v3/search/users', 200, 'search', 'points GET /search/users'],
    ['/search/users', 200, 'core', 'points GET outside basePath'],
    ['/api/v3x/search/users', 200, 'core', 'points GET outside basePath'],
    ['/rate_limit', 200, 'core', 'points GET outside basePath'],
  ]);
  assert.equal(upstream.count('/rate_limit'), 1);
});

test('paths outside the base path may pass without limits', async () => {
  await using open = await TestGateway.start({
    upstream: upstream.url,
    basePath: '/api/v3',
    outsideBasePath: 'pass',
    limits: { anonymous: 1 },
  });
  const answers = [];
  for (let count = 0; count < 3; count += 1) answers.push(await open.request('/o/r.git/info/refs'));
  const hidden = await open.request('/o/..%2fapi/v3/user');
  const spelled = [await open.request('/o/../api/v3/user'), await open.request('//api//v3/user')];

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.deepEqual(
    answers.map(({ headers }) => [headers['x-ratelimit-limit'], headers['x-ratelimit-used']]),
    [
      ['1', '0'],
      ['1', '0'],
      ['1', '0'],
    ],
  );
  assert.equal(hidden.status, 400);
  assert.deepEqual(
    spelled.map(({ status, headers }) => [status, headers['x-ratelimit-limit']]),
    [
      [403, '1'],
      [403, '1'],
    ],
  );
});

test('an action of the web interface counts as content and as nothing else', async () => {
  await using web = await TestGateway.start({
    upstream: upstream.url,
    basePath: '/api/v3',
    outsideBasePath: 'pass',
    secondary: { contentPerMinute: { limit: 2 } },
    webContent: ['POST /{owner}/{repo}/issues/new'],
  });
  const statuses: number[] = [];
  for (let n = 0; n < 3; n += 1) statuses.push((await web.request('/o/r/issues/new', { method: 'POST' })).status);
  const page = await web.request('/o/r/issues/new');
  const api = await web.request('/api/v3/repos/o/r/issues', { method: 'POST' });
  const { windows } = await askCaller(web.adminSocket, 'ip:127.0.0.1');

  assert.deepEqual([...statuses, page.status, api.status], [200, 200, 403, 200, 403]);
  assert.equal(page.headers['x-ratelimit-used'], '0');
  assert.deepEqual(
    windows.filter(({ name }) => !name.includes('cpu')).map(({ name, used }) => [name, used]),
    [
      ['content-minute', 2],
      ['content-hour', 2],
    ],
  );
});

test('the status is not found where no category is limited', async () => {
  const categories = Object.fromEntries(CATEGORIES.map((name) => [name, { limit: 'off' as const }]));
  await using off = await TestGateway.start({ upstream: upstream.url, categories });

  const status = await off.request('/rate_limit');
  const other = await off.request('/user');

  assert.equal(status.status, 404);
  assert.deepEqual([other.status, other.headers['x-ratelimit-remaining']], [200, '60']);
});

test('a path parameter hides nothing from the limits', async () => {
  const settings = { upstream: upstream.url, basePath: '/api/v1', outsideBasePath: 'pass' } as const;
  await using refusing = await TestGateway.start(settings);
  const paths = ['/api/v1;x/user', '/api;x/v1/user', '/x/..;/api/v1/user', '/x/..;y=/api/v1;z/user', '/;/api/v1/user'];
  const before = upstream.received.length;

  const refused = [];
  for (const path of paths) refused.push(await refusing.request(path));
  const outside = await refusing.request('/o/r/src/a;b');

  assert.deepEqual(
    refused.map(({ status, headers }) => [status, headers['x-ratelimit-used']]),
    paths.map((_, index) => [400, String(index + 1)]),
  );
  assert.equal(outside.status, 200);
  assert.deepEqual(
    upstream.received.slice(before).map(({ url }) => url),
    ['/o/r/src/a;b'],
  );
});

for (const header of ['x-platform-api-version', 'X-GitHub-Api-Version']) {
  test(`a version in ${header} that is known passes, and one that is not is 400`, async () => {
    const from = newCaller();
    const statuses: number[] = [];
    for (const version of ['2022-11-28', '2024-05-05', '2026-01-01', '2022-11-29', 'latest', '']) {
      const answer = await own.request('/api/v3/user', { from, headers: { [header]: version } });
      statuses.push(answer.status);
    }
    const before = upstream.received.length;
    const bad = await own.request('/api/v3/user', { from, headers: { [header]: '1999-01-01' } });

    assert.deepEqual(statuses, [200, 200, 200, 400, 400, 400]);
    assert.match((JSON.parse(bad.body) as { message: string }).message, /2022-11-28, 2024-05-05, 2026-01-01/);
    assert.equal(bad.headers['x-ratelimit-used'], '7');
    assert.equal(upstream.received.length, before);
  });
}

test('in the next version there is no source_import: its requests are core', async () => {
  const from = newCaller();
  const version = (value: string) => ({ from, headers: { 'x-platform-api-version': value } });

  const now = await own.request('/api/v3/repos/o/r/import', { ...version('2022-11-28'), method: 'PUT' });
  const next = await own.request('/api/v3/repos/o/r/import', { ...version('2026-01-01'), method: 'PUT' });
  const shown = await own.rateLimitAt('/api/v3/rate_limit', version('2026-01-01'));

  assert.deepEqual([now.headers['x-ratelimit-resource'], now.headers['x-ratelimit-limit']], ['source_import', '7']);
  assert.deepEqual([next.headers['x-ratelimit-resource'], next.headers['x-ratelimit-limit']], ['core', '50']);
  assert.equal('source_import' in shown.resources, false);
  assert.equal(shown.resources['core']?.used, 1);
});
