import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { type Answering, TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

/** The forge: the server behind the gateway, which also says whose token it is. */
const forge = await TestUpstream.start();
after(async () => await forge[Symbol.asyncDispose]());

/** Users of the forge, by the header that carries their credential. */
const users: Readonly<Record<string, unknown>> = {
  'Bearer of-seven': { id: 7, login: 'seven' },
  'Bearer of-seven-too': { id: 7, login: 'seven' },
  'token of-eight': { id: 8, login: 'eight' },
  'Bearer short-lived': { id: 9 },
  'Bearer at-once': { id: 10 },
  'Bearer without-id': { login: 'nobody' },
  [`Basic ${Buffer.from('eleven:secret').toString('base64')}`]: { id: 11 },
  [`Basic ${Buffer.from('twelve:secret').toString('base64')}`]: { id: 12 },
};

const userinfo: Answering = async (request, response) => {
  const user = users[request.headers.authorization ?? ''];
  await sleep(20); // so that several ask before the first has its answer
  if (request.headers.authorization === 'Bearer broken') response.end('{"id":');
  else if (request.headers.authorization === 'Bearer failing') response.writeHead(500).end();
  else if (request.headers.authorization === 'Bearer endless') response.end(`{"id":"${'x'.repeat(70_000)}"}`);
  else if (request.headers.authorization === 'Bearer silent') return; // for ever
  else response.writeHead(user === undefined ? 401 : 200).end(JSON.stringify(user ?? {}));
};
forge.on('/api/v1/user', userinfo);

const settings: Settings = {
  upstream: forge.url,
  introspection: { url: `${forge.url}/api/v1/user`, timeoutMs: 2000, cacheSeconds: 3 },
  log: { requests: true, level: 'debug' },
};
const gateway = await TestGateway.start(settings);
after(async () => await gateway[Symbol.asyncDispose]());

test('the forge names the owner of a token', async () => {
  const answer = await gateway.request('/user', { token: 'of-seven' });
  const other = await gateway.request('/user', { token: 'of-seven-too' });
  const eight = await gateway.request('/user', { headers: { authorization: 'token of-eight' } });

  assert.deepEqual([answer.status, answer.headers['x-ratelimit-limit']], [200, '5000']);
  assert.equal(other.headers['x-ratelimit-used'], '2', 'one count for both tokens of a user');
  assert.equal(eight.headers['x-ratelimit-used'], '1');
  assert.equal((await askCaller(gateway.adminSocket, 'user:7')).windows[0]?.used, 2);
});

test('a token that the forge does not know is 401, and counts on the address', async () => {
  const first = await gateway.request('/user', { token: 'unknown', from: '127.0.1.1' });
  const second = await gateway.request('/user', { from: '127.0.1.1' });

  assert.deepEqual([first.status, first.headers['x-ratelimit-limit']], [401, '60']);
  assert.equal(second.headers['x-ratelimit-used'], '2');
});

test('an answer without the id of a user is about nobody', async () => {
  const answer = await gateway.request('/user', { token: 'without-id', from: '127.0.1.9' });

  assert.equal(answer.status, 401);
});

test('the forge is asked once about a credential, however it is spelled', async () => {
  await using remembering = await TestGateway.start({
    upstream: forge.url,
    introspection: { url: `${forge.url}/api/v1/user` },
    credentials: { headers: ['PRIVATE-TOKEN'], queryParameters: ['access_token'] },
  });
  const basic = (text: string): string => Buffer.from(text).toString('base64');
  const spellings = [
    'Bearer of-seven',
    'bearer  of-seven ',
    'token of-seven',
    ...['a', 'b', 'ada', 'x-access-token', ''].map((user) => `Basic ${basic(`${user}:of-seven`)}`),
    `basic ${basic('of-seven:')}`,
    `Basic ${basic('of-seven:x-oauth-basic')}`,
    `BASIC   ${basic('abc:of-seven').replaceAll('=', '')}`,
  ];
  const before = forge.count('/api/v1/user');

  const answers = [];
  for (const authorization of spellings)
    answers.push(await remembering.request('/user', { headers: { authorization } }));
  answers.push(await remembering.request('/user', { headers: { 'private-token': 'of-seven' } }));
  answers.push(await remembering.request('/user?access_token=of-seven'));

  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers['x-ratelimit-used']]),
    answers.map((_, index) => [200, String(index + 1)]),
  );
  assert.equal(forge.count('/api/v1/user'), before + 1);
});

test('a wrong credential is asked about twice at most, as a token and as a user with a password', async () => {
  const from = '127.0.1.20';
  const pair = Buffer.from('ada:wrong').toString('base64');
  const before = forge.received.length;

  const statuses: number[] = [];
  for (const authorization of [`Basic ${pair}`, `basic ${pair}`, `Basic   ${pair}`]) {
    statuses.push((await gateway.request('/user', { from, headers: { authorization } })).status);
  }

  const asked = forge.received.slice(before).map(({ headers }) => headers.authorization);
  assert.deepEqual(statuses, [401, 401, 401]);
  assert.deepEqual(asked, ['Bearer wrong', `Basic ${pair}`]);
});

test('a password stands for its own user only', async () => {
  const ask = async (user: string) => {
    const authorization = `Basic ${Buffer.from(`${user}:secret`).toString('base64')}`;
    return await gateway.request('/user', { from: '127.0.1.21', headers: { authorization } });
  };

  const answers = [await ask('eleven'), await ask('twelve'), await ask('eleven'), await ask('nobody')];

  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers['x-ratelimit-used']]),
    [
      [200, '1'],
      [200, '1'],
      [200, '2'],
      [401, '1'],
    ],
  );
});

test('many requests at once ask once', async () => {
  await using remembering = await TestGateway.start({
    upstream: forge.url,
    introspection: { url: `${forge.url}/api/v1/user` },
  });
  const before = forge.count('/api/v1/user');

  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => await remembering.request('/user', { token: 'at-once' })),
  );

  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(forge.count('/api/v1/user'), before + 1);
});

test('an answer is remembered for as long as configured, known or not', async () => {
  const forget = 3050;
  const askForBoth = async (): Promise<void> => {
    for (const token of ['short-lived', 'never-lived']) await gateway.request('/user', { token, from: '127.0.1.2' });
  };
  let [before, asked, began] = [0, 0, -forget];
  // An answer that took longer than the cache lives proves nothing.
  while (performance.now() - began >= 2900) {
    await sleep(forget);
    before = forge.count('/api/v1/user');
    began = performance.now();
    for (let count = 0; count < 3; count += 1) await askForBoth();
    asked = forge.count('/api/v1/user') - before;
  }
  await sleep(forget);
  await askForBoth();

  assert.equal(asked, 2);
  assert.equal(forge.count('/api/v1/user') - before, 4);
});

for (const [index, token] of ['broken', 'failing', 'endless', 'silent'].entries()) {
  test(`no answer from the forge that can be used is 503, counted on the address, and not remembered: ${token}`, async () => {
    const from = `127.0.2.${index + 1}`;
    const asked = forge.count('/api/v1/user');

    const first = await gateway.request('/user', { token, from });
    const second = await gateway.request('/user', { token, from });

    assert.deepEqual([first.status, second.status], [503, 503]);
    assert.deepEqual(JSON.parse(first.body), { message: 'Credentials cannot be checked at the moment.' });
    assert.equal(first.headers['retry-after'], '1');
    assert.deepEqual(
      [first, second].map(({ headers }) => headers['x-ratelimit-used']),
      ['1', '2'],
    );
    assert.equal(forge.count('/api/v1/user'), asked + 2);
  });
}

test('an operator learns from log and metrics that the forge does not answer', async () => {
  const before = (await gateway.metrics()).get('gantry_gateway_identity_failures_total') ?? 0;

  await gateway.request('/user', { token: 'failing', from: '127.0.3.1' });

  const line = await gateway.logged('the identity source does not answer');
  assert.equal(line.level, 50);
  assert.equal((await gateway.metrics()).get('gantry_gateway_identity_failures_total'), before + 1);
});

test('cached identities go on while the forge is down, and a file knows without it', async () => {
  await using authority = await TestUpstream.start();
  authority.on('/user', (_request, response) => void response.end('{"id":1}'));
  await using lonely = await TestGateway.start({
    upstream: forge.url,
    introspection: { url: `${authority.url}/user`, timeoutMs: 20_000 },
    identities: {
      users: { ann: {} },
      tokens: [{ sha256: sha256('of-ann'), user: 'ann' }],
    },
  });
  await lonely.request('/user', { token: 'known-before' });
  await authority[Symbol.asyncDispose]();

  const known = await lonely.request('/user', { token: 'known-before' });
  const inFile = await lonely.request('/user', { token: 'of-ann' });
  const unknown = await lonely.request('/user', { token: 'not-known' });
  const anonymous = await lonely.request('/user');

  assert.deepEqual(
    [known, inFile, unknown, anonymous].map(({ status }) => status),
    [200, 200, 503, 200],
  );
});

test('a reload keeps cached identities, unless the source is another one', async () => {
  await using reloaded = await TestGateway.start({ ...settings, introspection: { url: `${forge.url}/api/v1/user` } });
  await reloaded.request('/user', { token: 'of-seven' });
  const before = forge.count('/api/v1/user');

  await reloaded.reload({ ...settings, introspection: { url: `${forge.url}/api/v1/user` }, refusal: { status: 429 } });
  await reloaded.request('/user', { token: 'of-seven' });
  const same = forge.count('/api/v1/user');
  await using openId = await TestUpstream.start();
  openId.on('/userinfo', (_request, response) => void response.end(JSON.stringify({ sub: 'seven' })));
  await reloaded.reload({ ...settings, introspection: { url: `${openId.url}/userinfo` } });
  await reloaded.request('/user', { token: 'of-seven' });

  assert.equal(same, before);
  assert.equal(openId.count('/userinfo'), 1);
  assert.equal((await askCaller(reloaded.adminSocket, 'user:seven')).windows[0]?.used, 1);
});

/** Answers of an introspection as in RFC 7662, the limit and the key that follow. */
const facts: readonly (readonly [token: string, answer: object, limit: number, key: string])[] = [
  ['plain', { active: true, sub: 'u1' }, 5000, 'user:u1'],
  ['named', { active: true, sub: 'x', user: 'u2', kind: 'personal' }, 5000, 'user:u2'],
  [
    'enterprise-app',
    { active: true, kind: 'app-user', user: 'u3', app: { owner: { id: 'o', enterprise: true } } },
    15_000,
    'user:u3',
  ],
  [
    'oauth-not-member',
    { active: true, kind: 'oauth-user', user: 'u4', app: { owner: { id: 'o', enterprise: true } } },
    5000,
    'user:u4',
  ],
  [
    'oauth-approved',
    {
      active: true,
      kind: 'oauth-user',
      user: 'u5',
      orgs: ['o'],
      app: { approvedBy: [{ id: 'o', enterprise: true }] },
    },
    15_000,
    'user:u5',
  ],
  ['scaled', { active: true, kind: 'installation', installation: 'i1', repositories: 30 }, 6500, 'installation:i1'],
  ['hosted', { active: true, kind: 'installation', installation: 'i2', hosted: true }, 15_000, 'installation:i2'],
  ['workflow', { active: true, kind: 'workflow', repository: 'r1' }, 1000, 'workflow:r1'],
  ['workflow-e', { active: true, kind: 'workflow', repository: 'r2', enterprise: true }, 15_000, 'workflow:r2'],
];

test('an introspection as in RFC 7662 gives every kind of caller', async () => {
  await using authority = await TestUpstream.start();
  const asked: { authorization: string | undefined; type: string | undefined; body: string }[] = [];
  authority.on('/introspect', async (request, response) => {
    const body = await text(request);
    asked.push({ authorization: request.headers.authorization, type: request.headers['content-type'], body });
    const token = new URLSearchParams(body).get('token');
    const found = facts.find(([name]) => name === token)?.[1];
    response.end(JSON.stringify(found ?? { active: false }));
  });
  await using asking = await TestGateway.start(
    `{"upstream": "${forge.url}", "listen": "127.0.0.1:0", "admin": {"socket": "{folder}/admin.sock"}}`,
  );
  writeFileSync(join(asking.folder, 'credential'), 'Bearer of-the-gateway\n');
  await asking.reload({
    upstream: forge.url,
    introspection: {
      url: `${authority.url}/introspect`,
      authorizationFile: '{folder}/credential',
    },
  });

  const answers = [];
  for (const [token] of facts) answers.push(await asking.request('/user', { token }));
  const inactive = await asking.request('/user', { token: 'another+one&=' });

  assert.deepEqual(
    answers.map(({ status, headers }) => [status, Number(headers['x-ratelimit-limit'])]),
    facts.map(([, , limit]) => [200, limit]),
  );
  for (const [, , , key] of facts) {
    assert.equal((await askCaller(asking.adminSocket, key)).windows[0]?.used, 1, key);
  }
  assert.equal(inactive.status, 401);
  assert.deepEqual(asked.at(-1), {
    authorization: 'Bearer of-the-gateway',
    type: 'application/x-www-form-urlencoded',
    body: 'token=another%2Bone%26%3D',
  });
  assert.equal(asking.output.includes('of-the-gateway'), false);
});

test('no token that the forge was asked about is in the log', () => {
  for (const token of ['of-seven', 'at-once', 'never-lived', 'failing', 'silent']) {
    assert.equal(gateway.output.includes(token), false, token);
  }
});

test('a token may stand in another header, in the query or in a cookie, and the forge is asked in its way', async () => {
  await using gitlab = await TestUpstream.start();
  gitlab.on('/user', (request, response) => {
    const { authorization, cookie, 'private-token': token } = request.headers;
    const ids: Readonly<Record<string, number>> = { 'p-1': 1, 'Bearer q-2': 2, 'session=c-3': 3 };
    const id = ids[String(token ?? authorization ?? cookie)];
    if (id === undefined) response.writeHead(401).end();
    else response.end(JSON.stringify({ id }));
  });
  await using own = await TestGateway.start({
    upstream: forge.url,
    introspection: { url: `${gitlab.url}/user` },
    credentials: { headers: ['PRIVATE-TOKEN'], queryParameters: ['access_token'], cookies: ['session'] },
  });
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await own.request(path, { headers });
    return [answer.status, answer.headers['x-ratelimit-limit']];
  };

  const answers = [
    await ask('/user', { 'private-token': 'p-1' }),
    await ask('/user?x=1&access_token=q-2'),
    await ask('/user', { cookie: 'theme=dark; session=c-3' }),
    await ask('/user', { 'private-token': 'wrong' }),
    await ask('/user', { cookie: 'session=of-a-visitor' }),
    await ask('/user', { cookie: 'theme=dark' }),
  ];

  assert.deepEqual(answers, [
    [200, '5000'],
    [200, '5000'],
    [200, '5000'],
    [401, '60'],
    [200, '60'],
    [200, '60'],
  ]);
  for (const id of [1, 2, 3]) assert.equal((await askCaller(own.adminSocket, `user:${id}`)).windows[0]?.used, 1);
});

test('two credentials that differ are 400, and count on the address', async () => {
  await using own = await TestGateway.start({
    upstream: forge.url,
    introspection: { url: `${forge.url}/api/v1/user` },
    credentials: { headers: ['PRIVATE-TOKEN'], queryParameters: ['access_token', 'token'], cookies: ['session'] },
  });
  const basic = `Basic ${Buffer.from('ada:of-seven').toString('base64')}`;
  const [seven, eight] = ['Bearer of-seven', { 'private-token': 'of-eight' }];
  const ask = async (path: string, headers: Record<string, string>) => (await own.request(path, { headers })).status;
  const before = forge.count('/user');

  const refused = [
    await ask('/user', { authorization: seven, ...eight }),
    await ask('/user?access_token=of-eight', { authorization: seven }),
    await ask('/user?access%5Ftoken=of-eight', { authorization: basic }),
    await ask('/user?token=of-seven', eight),
    await ask('/user?token=of-seven&token=of-eight', {}),
    await ask('/user?token=of-seven&access_token=of-eight', {}),
    await ask('/user', { authorization: 'Negotiate abc', ...eight }),
  ];
  const passed = forge.count('/user') - before;
  const same = [
    await ask('/user?token=of-seven', { authorization: seven, 'private-token': 'of-seven' }),
    await ask('/user?token=of-seven', { authorization: basic }),
    await ask('/user', { authorization: seven, cookie: 'session=of-a-visitor' }),
  ];

  assert.deepEqual([new Set(refused), passed], [new Set([400]), 0]);
  assert.deepEqual(same, [200, 200, 200]);
  const { windows } = await askCaller(own.adminSocket, 'ip:127.0.0.1');
  assert.equal(windows.find(({ name }) => name === 'core')?.used, refused.length);
});
