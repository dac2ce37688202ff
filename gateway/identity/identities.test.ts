import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const gateway = await TestGateway.start({
  upstream: upstream.url,
  trustProxy: ['127.0.0.2', '10.0.0.0/8', '2001:db8:ffff::/48'],
  log: { level: 'debug', requests: true },
  identities: {
    users: { alice: { orgs: ['corp'] }, bob: {}, carol: { orgs: ['small'] }, dora: { orgs: ['corp'] }, eve: {} },
    orgs: {
      corp: { enterprise: true },
      small: {},
      hosting: { hosted: true },
      twenty: { members: 20 },
      thirty: { members: 30 },
      hundreds: { members: 500 },
    },
    apps: {
      'corp-app': { kind: 'platform', owner: 'corp' },
      'small-app': { kind: 'platform', owner: 'small' },
      'platform-client': { kind: 'platform', clientId: 'platform-id', clientSecretSha256: sha256('platform-secret') },
      'corp-oauth': {
        kind: 'oauth',
        owner: 'corp',
        clientId: 'corp-client',
        clientSecretSha256: sha256('corp-secret'),
      },
      'approved-oauth': { kind: 'oauth', owner: 'small', approvedBy: ['corp'] },
      'plain-oauth': { kind: 'oauth', clientId: 'plain-client', clientSecretSha256: sha256('plain-secret') },
    },
    installations: {
      'twenty-repositories': { repositories: 20 },
      'twenty-one-repositories': { repositories: 21 },
      'twenty-users': { org: 'twenty', repositories: 1 },
      'thirty-users': { org: 'thirty', repositories: 1 },
      both: { org: 'thirty', repositories: 40 },
      huge: { org: 'hundreds', repositories: 500 },
      'on-hosted': { org: 'hosting', repositories: 500 },
      'on-user': { repositories: 3 },
    },
    repositories: { plain: {}, 'of-corp': { org: 'corp' }, 'of-small': { org: 'small' } },
    tokens: [
      { sha256: sha256('alice-personal'), user: 'alice' },
      { sha256: sha256('alice-corp-app'), user: 'alice', app: 'corp-app' },
      { sha256: sha256('alice-small-app'), user: 'alice', app: 'small-app' },
      { sha256: sha256('alice-corp-oauth'), user: 'alice', app: 'corp-oauth' },
      { sha256: sha256('bob-personal'), user: 'bob' },
      { sha256: sha256('bob-corp-app'), user: 'bob', app: 'corp-app' },
      { sha256: sha256('bob-corp-oauth'), user: 'bob', app: 'corp-oauth' },
      { sha256: sha256('bob-small-app'), user: 'bob', app: 'small-app' },
      { sha256: sha256('carol-approved-oauth'), user: 'carol', app: 'approved-oauth' },
      { sha256: sha256('dora-approved-oauth'), user: 'dora', app: 'approved-oauth' },
      { sha256: sha256('dora-plain-oauth'), user: 'dora', app: 'plain-oauth' },
      { sha256: sha256('eve-personal'), user: 'eve' },
      { sha256: sha256('t-20r'), installation: 'twenty-repositories' },
      { sha256: sha256('t-21r'), installation: 'twenty-one-repositories' },
      { sha256: sha256('t-20u'), installation: 'twenty-users' },
      { sha256: sha256('t-30u'), installation: 'thirty-users' },
      { sha256: sha256('t-both'), installation: 'both' },
      { sha256: sha256('t-huge'), installation: 'huge' },
      { sha256: sha256('t-hosted'), installation: 'on-hosted' },
      { sha256: sha256('t-user'), installation: 'on-user' },
      { sha256: sha256('w-plain'), repository: 'plain' },
      { sha256: sha256('w-plain-2'), repository: 'plain' },
      { sha256: sha256('w-corp'), repository: 'of-corp' },
      { sha256: sha256('w-small'), repository: 'of-small' },
    ],
  },
});
after(async () => await gateway[Symbol.asyncDispose]());

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

async function ask(authorization: string, from?: string) {
  const answer = await gateway.request('/user', {
    headers: { authorization },
    ...(from === undefined ? {} : { from }),
  });
  const { 'x-ratelimit-limit': limit, 'x-ratelimit-used': used } = answer.headers;
  return { status: answer.status, limit: Number(limit), used: Number(used), answer };
}

async function requestsOf(key: string): Promise<number> {
  const { windows } = await askCaller(gateway.adminSocket, key);
  return windows.find(({ name }) => name === 'core')?.used ?? 0;
}

const rows: readonly (readonly [who: string, authorization: string, key: string, limit: number])[] = [
  ['a personal token', 'Bearer eve-personal', 'user:eve', 5000],
  ['a platform app of an enterprise for a user', 'Bearer alice-corp-app', 'user:alice', 15_000],
  ['a platform app of an enterprise for a user who is no member', 'Bearer bob-corp-app', 'user:bob', 15_000],
  ['a platform app of another organization for a user', 'Bearer bob-small-app', 'user:bob', 5000],
  ['an OAuth app of an enterprise for a member', 'Bearer alice-corp-oauth', 'user:alice', 15_000],
  ['an OAuth app of an enterprise for a user who is no member', 'Bearer bob-corp-oauth', 'user:bob', 5000],
  ['an OAuth app that an enterprise approved, for a member', 'Bearer dora-approved-oauth', 'user:dora', 15_000],
  ['the same for a member of its owner only', 'Bearer carol-approved-oauth', 'user:carol', 5000],
  ['an OAuth app of nobody', 'Bearer dora-plain-oauth', 'user:dora', 5000],
  ['an installation with 20 repositories', 'Bearer t-20r', 'installation:twenty-repositories', 5000],
  ['an installation with 21 repositories', 'Bearer t-21r', 'installation:twenty-one-repositories', 6050],
  ['an installation for 20 users', 'Bearer t-20u', 'installation:twenty-users', 5000],
  ['an installation for 30 users', 'Bearer t-30u', 'installation:thirty-users', 6500],
  ['an installation with 40 repositories for 30 users', 'Bearer t-both', 'installation:both', 8500],
  ['a huge installation', 'Bearer t-huge', 'installation:huge', 12_500],
  ['an installation on a hosted organization', 'Bearer t-hosted', 'installation:on-hosted', 15_000],
  ['an installation on a user', 'Bearer t-user', 'installation:on-user', 5000],
  ['an OAuth app by itself', basic('plain-client', 'plain-secret'), 'app:plain-oauth', 5000],
  ['an OAuth app of an enterprise by itself', basic('corp-client', 'corp-secret'), 'app:corp-oauth', 15_000],
  ['a workflow token', 'Bearer w-plain', 'workflow:plain', 1000],
  ['a workflow token in an enterprise', 'Bearer w-corp', 'workflow:of-corp', 15_000],
  ['a workflow token in another organization', 'Bearer w-small', 'workflow:of-small', 1000],
];

for (const [who, authorization, key, limit] of rows) {
  test(`${who} has ${limit} requests, counted on ${key}`, async () => {
    const before = await requestsOf(key);

    const answer = await ask(authorization);

    assert.deepEqual([answer.status, answer.limit, answer.used], [200, limit, before + 1]);
    assert.equal(await requestsOf(key), before + 1);
  });
}

test('a caller without a credential has 60 requests, counted on its address', async () => {
  const one = await gateway.request('/user', { from: '127.0.1.1' });
  const other = await gateway.request('/user', { from: '127.0.1.2' });
  const again = await gateway.request('/user', { from: '127.0.1.1' });

  assert.deepEqual(
    [one, other, again].map(({ headers }) => headers['x-ratelimit-limit']),
    ['60', '60', '60'],
  );
  assert.deepEqual(
    [one, other, again].map(({ headers }) => headers['x-ratelimit-used']),
    ['1', '1', '2'],
  );
  assert.equal(await requestsOf('ip:127.0.1.1'), 2);
});

test('a user has one count, whatever the token and its limit', async () => {
  const first = await ask('Bearer alice-personal');

  const through = [
    await ask('Bearer alice-corp-app'),
    await ask('Bearer alice-corp-oauth'),
    await ask('Bearer alice-small-app'),
    await ask('Bearer alice-personal'),
  ];

  assert.deepEqual(
    through.map(({ used }) => used - first.used),
    [1, 2, 3, 4],
  );
  assert.deepEqual(
    through.map(({ limit }) => limit),
    [15_000, 15_000, 5000, 5000],
  );
  assert.equal(new Set(through.map(({ answer }) => answer.headers['x-ratelimit-reset'])).size, 1);
});

test('a repository has one count for all its workflow tokens', async () => {
  const first = await ask('Bearer w-plain');
  const second = await ask('Bearer w-plain-2');

  assert.equal(second.used, first.used + 1);
});

const forms = [
  ...[
    'Bearer eve-personal',
    'bearer eve-personal',
    'BEARER eve-personal',
    'token eve-personal',
    'Token   eve-personal',
  ],
  ...[basic('eve-personal', ''), basic('eve-personal', 'x-oauth-basic'), basic('anyone', 'eve-personal')],
  ...[basic('x-access-token', 'eve-personal'), `basic ${basic('', 'eve-personal').slice(6)}`],
];
for (const form of forms) {
  test(`a token is known in the form ${form}`, async () => {
    const before = await requestsOf('user:eve');

    const { status } = await ask(form);

    assert.equal(status, 200);
    assert.equal(await requestsOf('user:eve'), before + 1);
  });
}

const refused = [
  ['an unknown token', 'Bearer nobody-has-this'],
  ['a token with another letter', 'Bearer eve-personaL'],
  ['a scheme alone', 'Bearer'],
  ['a scheme with nothing', 'Bearer '],
  ['nothing', ''],
  ['an unknown scheme', 'Digest username="eve"'],
  ['two tokens', 'Bearer eve-personal eve-personal'],
  ['bytes that are no token', 'Bearer eve-pers\u00f6nal'],
  ['Basic that is no base64', 'Basic !!!'],
  ['Basic without a colon', `Basic ${Buffer.from('eve').toString('base64')}`],
  ['Basic with control characters', `Basic ${Buffer.from('a\u0000:b').toString('base64')}`],
  ['Basic with nothing', basic('', '')],
  ['a client id with another secret', basic('corp-client', 'plain-secret')],
  ['a client id without its secret', basic('corp-client', '')],
  ['a client id with the name of its hash', basic('corp-client', sha256('corp-secret'))],
  ['the hash of a token', `Bearer ${sha256('eve-personal')}`],
  ['a very long token', `Bearer ${'x'.repeat(9000)}`],
] as const;
for (const [index, [what, authorization]] of refused.entries()) {
  test(`401, counted on the address: ${what}`, async () => {
    const from = `127.0.2.${index + 1}`;
    const asked = upstream.received.length;

    const first = await ask(authorization, from);
    const second = await gateway.request('/user', { from });

    assert.deepEqual([first.status, first.limit, first.used], [401, 60, 1]);
    assert.equal(second.headers['x-ratelimit-used'], '2');
    assert.equal(first.answer.headers['content-type'], 'application/json; charset=utf-8');
    assert.deepEqual(JSON.parse(first.answer.body), { message: 'Bad credentials' });
    assert.match(first.answer.headers['www-authenticate'] ?? '', /^Bearer/);
    assert.equal(upstream.received.length, asked + 1, 'only the second was passed on');
  });
}

test('an address that guesses tokens is refused after its 60 requests', async () => {
  const statuses: number[] = [];
  for (let index = 0; index < 62; index += 1) {
    statuses.push((await ask(`Bearer guess-${index}`, '127.0.3.1')).status);
  }
  const right = await ask('Bearer eve-personal', '127.0.3.1');

  assert.deepEqual([statuses.filter((status) => status === 401).length, statuses.slice(60)], [60, [403, 403]]);
  assert.equal(right.status, 200, 'a right token is not the address');
});

test("a client's claims about its address are not believed", async () => {
  const names = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'true-client-ip', 'X-Forwarded-For', 'x_forwarded_for'];
  for (const name of names) {
    await gateway.request('/spoofed', { from: '127.0.4.1', headers: { [name]: '203.0.113.1' } });
  }

  assert.equal(await requestsOf('ip:127.0.4.1'), names.length);
  assert.equal(await requestsOf('ip:203.0.113.1'), 0);
  for (const { headers, rawHeaders } of upstream.received.filter(({ url }) => url === '/spoofed')) {
    assert.equal(headers['x-forwarded-for'], '127.0.4.1');
    assert.equal(rawHeaders.includes('203.0.113.1'), false);
  }
});

const chains: readonly (readonly [forwardedFor: string | string[], client: string, sent: string])[] = [
  ['198.51.100.1', 'ip:198.51.100.1', '198.51.100.1, 127.0.0.2'],
  ['198.51.100.99, 198.51.100.2', 'ip:198.51.100.2', '198.51.100.99, 198.51.100.2, 127.0.0.2'],
  ['198.51.100.3, 10.1.2.3', 'ip:198.51.100.3', '198.51.100.3, 10.1.2.3, 127.0.0.2'],
  ['198.51.100.4:4711', 'ip:198.51.100.4', '198.51.100.4:4711, 127.0.0.2'],
  ['::ffff:198.51.100.5', 'ip:198.51.100.5', '::ffff:198.51.100.5, 127.0.0.2'],
  [['198.51.100.99', '198.51.100.6'], 'ip:198.51.100.6', '198.51.100.99, 198.51.100.6, 127.0.0.2'],
  ['10.9.9.1, 10.9.9.2', 'ip:10.9.9.1', '10.9.9.1, 10.9.9.2, 127.0.0.2'],
  ['198.51.100.99, unknown, 10.9.9.3', 'ip:10.9.9.3', '198.51.100.99, unknown, 10.9.9.3, 127.0.0.2'],
  ['2001:db8:1:2:3::4', 'ip:2001:db8:1:2::1', '2001:db8:1:2:3::4, 127.0.0.2'],
  ['[2001:db8:1:3::4]:80, 2001:db8:ffff::1', 'ip:2001:db8:1:3::', '[2001:db8:1:3::4]:80, 2001:db8:ffff::1, 127.0.0.2'],
];
for (const [forwardedFor, client, sent] of chains) {
  test(`from a trusted proxy, ${String(forwardedFor)} is ${client}`, async () => {
    const headers = { 'x-forwarded-for': forwardedFor };

    const { status } = await gateway.request(`/proxied?${encodeURIComponent(client)}`, { from: '127.0.0.2', headers });

    assert.equal(status, 200);
    assert.equal(await requestsOf(client), 1);
    assert.equal(upstream.received.at(-1)?.headers['x-forwarded-for'], sent);
  });
}

test('addresses of one IPv6 network of 64 bits are one caller', async () => {
  const used: (string | undefined)[] = [];
  for (const address of ['2001:db8:7:7::1', '2001:db8:7:7:ffff::2', '2001:db8:7:8::1']) {
    const answer = await gateway.request('/user', { from: '127.0.0.2', headers: { 'x-forwarded-for': address } });
    used.push(answer.headers['x-ratelimit-used']);
  }

  assert.deepEqual(used, ['1', '2', '1']);
});

test('the credential reaches the upstream once, even when a client sends two', async () => {
  await gateway.request('/twice', { headers: { authorization: ['Bearer eve-personal', 'Bearer bob-personal'] } });

  const received = upstream.received.find(({ url }) => url === '/twice');
  const sent = received?.rawHeaders.filter((_, index, all) => all[index - 1]?.toLowerCase() === 'authorization');
  assert.deepEqual(sent, ['Bearer eve-personal']);
});

test('no credential is ever written to the log', async () => {
  const secrets = ['eve-personal', 'alice-corp-app', 'corp-secret', 'plain-secret', 'unknown-secret', 't-huge'];
  for (const secret of secrets) {
    await ask(`Bearer ${secret}`, '127.0.5.1');
    await ask(basic('corp-client', secret), '127.0.5.2');
    await gateway.request(`/user?access_token=${secret}`, { from: '127.0.5.3' });
    await gateway.request('/user', { from: '127.0.5.4', headers: { cookie: secret, 'proxy-authorization': secret } });
    await gateway.request(`http://user:${secret}@host/user`, { from: '127.0.5.5' });
  }
  const lines = gateway.log.length;
  await gateway.request('/last');
  await gateway.logged('request', lines);

  assert.ok(gateway.log.length > 100, 'every request is in the log');
  for (const secret of secrets) {
    for (const form of [secret, sha256(secret), Buffer.from(secret).toString('base64')]) {
      assert.equal(gateway.output.includes(form), false, `${secret} as ${form}`);
    }
  }
});

test('an unknown credential may be passed on and counted on the address, where that is configured', async () => {
  await using lenient = await TestGateway.start({ upstream: upstream.url, identities: { unknown: 'address' } });

  const unknown = await lenient.request('/lenient', { token: 'unknown' });
  const malformed = await lenient.request('/lenient', { headers: { authorization: 'Bearer' } });

  assert.deepEqual([unknown.status, unknown.headers['x-ratelimit-limit']], [200, '60']);
  assert.equal(upstream.received.at(-1)?.headers.authorization, 'Bearer unknown');
  assert.equal(malformed.status, 401);
});

test("a platform app's id and secret give no limit of their own: its address counts", async () => {
  const right = await ask(basic('platform-id', 'platform-secret'), '127.0.9.1');
  const wrong = await ask(basic('platform-id', 'guessed'), '127.0.9.1');

  assert.deepEqual([right.status, right.limit, right.used], [200, 60, 1]);
  assert.deepEqual([wrong.status, wrong.limit], [401, 60]);
});
