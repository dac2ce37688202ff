import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import type { StatusBody } from '@gantry/limiter/present.ts';
import { type Request, type Settings, sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { random } from '@gantry/testing/limiter/store.fixture.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const nextAnswer = random(99);
upstream.on('/api/user', (_, response) => {
  const cost = ['0', '1', '4', '-1', '1e9'][nextAnswer(5)]!;
  response.writeHead([200, 200, 304, 404, 500][nextAnswer(5)]!, { 'x-cost': cost }).end();
});

const basic = `Basic ${Buffer.from('client:secret').toString('base64')}`;
const callers: readonly Request[] = [
  { from: '127.0.0.1' },
  { token: 'unknown', from: '127.0.0.2' },
  ...['personal', 'enterprise-app', 'installation', 'workflow'].map((token) => ({ token })),
  { headers: { authorization: basic } },
];
const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 5, user: 6 },
  overrides: { 'installation:one': { limit: 4 }, 'app:oauth': { limit: 3 }, 'workflow:r': { limit: 2 } },
  categories: {
    core: { also: [{ limit: 4, windowSeconds: 60 }] },
    search: { limit: 3, anonymousLimit: 1 },
    scim: { limit: 'off' },
    code_search: { window: 'sliding' },
  },
  secondary: { restPoints: { limit: 20 } },
  outsideBasePath: 'pass',
  basePath: '/api',
  identities: {
    users: { ada: {} },
    orgs: { corp: { enterprise: true } },
    apps: {
      app: { kind: 'platform', owner: 'corp' },
      oauth: { kind: 'oauth', clientId: 'client', clientSecretSha256: sha256('secret') },
    },
    installations: { one: {} },
    repositories: { r: {} },
    tokens: [
      { sha256: sha256('personal'), user: 'ada' },
      { sha256: sha256('enterprise-app'), user: 'ada', app: 'app' },
      { sha256: sha256('installation'), installation: 'one' },
      { sha256: sha256('workflow'), repository: 'r' },
    ],
  },
};
const targets: readonly (readonly [path: string, options?: Request])[] = [
  ['/api/user'],
  ['/api/search/users'],
  ['/api/search/code'],
  ['/api/scim/v2'],
  ['/api/rate_limit'],
  ['/api/user', { method: 'HEAD' }],
  ['/api/gists', { method: 'POST', body: '{}' }],
  ['/api/graphql', { method: 'POST', body: '{"query":"{ a }"}', headers: { 'content-type': 'application/json' } }],
  ['/api/app-manifests/1/conversions', { method: 'POST' }],
  ['/api/repos/o/r/dependency-graph/snapshots', { method: 'POST' }],
  ['/api/repos/o/r/code-scanning/sarifs', { method: 'POST' }],
  ['/api/repos/o/r/actions/runners/registration-token', { method: 'POST' }],
  ['/outside'],
  ['/api/../x%00'],
];

const redis = await TestRedis.start();
after(async () => await redis[Symbol.asyncDispose]());
const kinds: readonly (readonly [name: string, Settings])[] = [
  ['memory', {}],
  ['two workers', { workers: 2 }],
  ['SQLite', { store: { kind: 'sqlite', path: '{folder}/counts.db' } }],
  ['Redis', { store: { kind: 'redis', url: redis.url } }],
  ['costs by the answer', { cost: { free: [304, '5xx'], header: 'x-cost' } }],
  [
    'costs by the answer, two workers with Redis',
    {
      cost: { free: ['2xx'], header: 'x-cost' },
      workers: 2,
      store: { kind: 'redis', url: redis.url, prefix: 'costs:' },
    },
  ],
  ['shadow mode', { shadow: ['primary'] }],
];
for (const [index, [name, own]] of kinds.entries()) {
  test(`limit = used + remaining on every answer (${name})`, async () => {
    await using gateway = await TestGateway.start({ ...settings, ...own });
    const next = random(index + 1);
    const resources = new Set<string>();

    for (let step = 0; step < 200; step += 1) {
      const [path, options = {}] = targets[next(targets.length)]!;
      const caller = callers[next(callers.length)]!;
      const headers = { ...options.headers, ...caller.headers };
      const answer = await gateway.request(path, { ...options, ...caller, headers });
      const shown = (field: string): number => Number(answer.headers[`x-ratelimit-${field}`]);
      const told = `${JSON.stringify(caller)} ${path}: ${answer.status} ${JSON.stringify(answer.headers)}`;
      assert.equal(shown('used') + shown('remaining'), shown('limit'), told);
      resources.add(answer.headers['x-ratelimit-resource']!);
      if (path !== '/api/rate_limit' || answer.status !== 200) continue;
      for (const { limit, used, remaining } of Object.values((JSON.parse(answer.body) as StatusBody).resources)) {
        assert.equal(used + remaining, limit, `${told} ${answer.body}`);
      }
    }

    assert.deepEqual([...resources].toSorted(), [
      'actions_runner_registration',
      'code_scanning_upload',
      'code_search',
      'core',
      'dependency_snapshots',
      'graphql',
      'integration_manifest',
      'search',
    ]);
  });
}
