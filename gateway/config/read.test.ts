import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { ConfigError, readConfig } from './read.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-gateway-config-'));
after(() => rmSync(folder, { recursive: true }));

const HASH = '0'.repeat(64);
const OTHER = '1'.repeat(64);
let files = 0;

function fileWith(text: string, ending = 'yaml'): string {
  files += 1;
  const file = join(folder, `${files}.${ending}`);
  writeFileSync(file, text);
  return file;
}

/** Problems of a file, without its name. */
function problemsOf(text: string, ending?: string): string[] {
  const file = fileWith(text, ending);
  try {
    readConfig(file);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replace(file, ''));
    throw error;
  }
  return [];
}

const upstream = 'upstream: http://127.0.0.1:3000';

test('the defaults are the numbers of the specification', () => {
  const { limits, secondary, categories, refusal, ban, shadow, listen, store } = readConfig(fileWith(upstream));

  assert.equal(listen, '127.0.0.1:8080');
  assert.equal(store.kind, 'memory');
  assert.deepEqual(limits, { anonymous: 60, user: 5000 });
  assert.deepEqual(secondary, {
    concurrent: { limit: 100 },
    restPoints: { limit: 900 },
    graphqlPoints: { limit: 2000 },
    cpu: { totalSeconds: 90, graphqlSeconds: 60 },
    contentPerMinute: { limit: 80 },
    contentPerHour: { limit: 500 },
    windowSeconds: 60,
    window: 'fixed',
    graphqlCost: 'request',
    points: {},
  });
  assert.deepEqual(
    Object.entries(categories).map(([name, { limit, windowSeconds }]) => [name, limit, windowSeconds]),
    [
      ['core', 'caller', 3600],
      ...[
        ...['search', 'code_search', 'graphql', 'integration_manifest', 'dependency_snapshots'],
        ...['code_scanning_upload', 'actions_runner_registration', 'source_import', 'scim'],
      ].map((name) => [name, 'caller', 3600]),
    ],
  );
  assert.deepEqual([refusal.status, ban, shadow], [403, undefined, []]);
});

test('JSON and YAML say the same', () => {
  const yaml = readConfig(fileWith(`${upstream}\nlimits: { user: 7 }\ntrustProxy:\n  - 10.0.0.0/8\n`));
  const json = readConfig(
    fileWith('{"upstream": "http://127.0.0.1:3000", "limits": {"user": 7}, "trustProxy": ["10.0.0.0/8"]}', 'json'),
  );

  assert.deepEqual(json, yaml);
  assert.equal(json.limits.user, 7);
});

test('the keys of named entries have their defaults too', () => {
  const { identities } = readConfig(
    fileWith(`${upstream}
identities:
  users: { alice: {} }
  orgs: { acme: {} }
  apps: { ci: { kind: platform } }
  installations: { one: { org: acme } }
  repositories: { r: {} }`),
  );

  assert.deepEqual(identities, {
    users: { alice: { orgs: [] } },
    orgs: { acme: { enterprise: false, hosted: false } },
    apps: { ci: { kind: 'platform', approvedBy: [] } },
    installations: { one: { org: 'acme', repositories: 0 } },
    repositories: { r: {} },
    tokens: [],
    unknown: 'refuse',
  });
});

const wrong: readonly (readonly [what: string, text: string, problems: readonly string[]])[] = [
  ['nothing at all', '', [':1:1: upstream: is missing']],
  ['a list', '- 1\n', [':1:1: settings are expected, key: value']],
  ['an unknown key', `${upstream}\nlissen: 80\n`, [':2:1: lissen: unknown key']],
  ['an unknown key further in', `${upstream}\nlimits:\n  users: 3\n`, [':3:3: limits.users: unknown key']],
  ['an unknown category', `${upstream}\ncategories:\n  packages: {}\n`, [':3:3: categories.packages: unknown key']],
  ['a key twice', `${upstream}\nlimits: {}\nlimits: {}\n`, [':3:1: Map keys must be unique']],
  ['a text for a number', `${upstream}\nlimits:\n  user: many\n`, [':3:9: limits.user: must be integer, not "many"']],
  ['a negative limit', `${upstream}\nlimits:\n  user: -1\n`, [':3:9: limits.user: must be >= 0, not -1']],
  [
    'a limit that is neither number nor word',
    `${upstream}\ncategories:\n  search: { limit: plenty }\n`,
    [':3:20: categories.search.limit: must be integer or must be "caller" or must be "off", not "plenty"'],
  ],
  [
    'an unknown store',
    `${upstream}\nstore: { kind: mysql }\n`,
    [':2:16: store.kind: must be one of memory, sqlite, redis, not "mysql"'],
  ],
  ['sqlite without a file', `${upstream}\nstore: { kind: sqlite }\n`, [':2:8: store.path: sqlite needs a file']],
  ['redis without a url', `${upstream}\nstore: { kind: redis }\n`, [':2:8: store.url: redis needs a url']],
  ['a file for a store without one', `${upstream}\nstore:\n  path: /x\n`, [':3:9: store.path: memory has no file']],
  [
    'an address that is none',
    `${upstream}\nlisten: [127.0.0.1:99999]\n`,
    [':2:10: listen.0: address:port or unix:/path is expected, not "127.0.0.1:99999"'],
  ],
  [
    'a Unix socket for several workers',
    `${upstream}\nworkers: 2\nlisten: unix:/x\n`,
    [':3:9: listen: several workers can share a port, but not a Unix socket'],
  ],
  [
    'a range that is too narrow',
    `${upstream}\ntrustProxy: [10.0.0.0/8, 10.0.0.0/33]\n`,
    [':2:26: trustProxy.1: an address or CIDR range is expected, not "10.0.0.0/33"'],
  ],
  [
    'a cost in a header that clients need',
    `${upstream}\ncost: { header: Content-Length }\n`,
    [':2:17: cost.header: clients need Content-Length, and would not get it'],
  ],
  [
    'statuses that are none',
    `${upstream}\ncost: { free: [304, 99] }\n`,
    [':2:21: cost.free.1: must be >= 200 or must be "2xx" or must be "3xx" or must be "4xx" or must be "5xx", not 99'],
  ],
  [
    'a window without length',
    `${upstream}\nsecondary: { windowSeconds: 0 }\n`,
    [':2:29: secondary.windowSeconds: must be >= 1, not 0'],
  ],
  [
    'a limit that no counter holds',
    `${upstream}\nsecondary: { cpu: { totalSeconds: 9999 } }\n`,
    [':2:35: secondary.cpu.totalSeconds: must be <= 2000 or must be "off", not 9999'],
  ],
  [
    'a template without a method',
    `${upstream}\nsecondary: { points: { /search: 3 } }\n`,
    [':2:33: secondary.points./search: "GET /path/{name}" is expected, not "/search"'],
  ],
  [
    'routes of core',
    `${upstream}\ncategories: { core: { routes: [GET /x] } }\n`,
    [':2:31: categories.core.routes: core has every route that no other category has, so it takes none'],
  ],
  [
    'a token of nobody',
    `${upstream}\nidentities: { tokens: [{ sha256: '${HASH}', user: bob }] }\n`,
    [':2:108: identities.tokens.0.user: there is no user bob'],
  ],
  [
    'a token that is not a hash',
    `${upstream}\nidentities: { users: { bob: {} }, tokens: [{ sha256: secret, user: bob }] }\n`,
    [':2:54: identities.tokens.0.sha256: must be 64 hexadecimal digits, not "secret"'],
  ],
  [
    'a token twice',
    `${upstream}\nidentities:\n  users: { bob: {} }\n  tokens:\n    - { sha256: 'A${HASH.slice(1)}', user: bob }\n    - { sha256: 'a${HASH.slice(1)}', user: bob }\n`,
    [':6:17: identities.tokens.1.sha256: the same token stands above'],
  ],
  [
    'tokens without an owner, or with an app of nobody',
    `${upstream}\nidentities:\n  apps: { ci: { kind: oauth } }\n  tokens:\n    - { sha256: '${HASH}' }\n    - { sha256: '${OTHER}', app: ci }\n`,
    [
      ':5:7: identities.tokens.0: one owner of the token is expected: user, installation or repository',
      ':6:7: identities.tokens.1: one owner of the token is expected: user, installation or repository',
      ':6:90: identities.tokens.1.app: an app acts for a user, and there is no user',
    ],
  ],
  [
    'an app of an organization that is not there',
    `${upstream}\nidentities: { apps: { ci: { kind: oauth, owner: acme } } }\n`,
    [':2:49: identities.apps.ci.owner: there is no organization acme'],
  ],
  [
    'a client id without a secret',
    `${upstream}\nidentities: { apps: { ci: { kind: oauth, clientId: x } } }\n`,
    [':2:27: identities.apps.ci: clientId and clientSecretSha256 belong together'],
  ],
  [
    'a file that is not there',
    `${upstream}\nintrospection:\n  url: http://127.0.0.1:1/\n  authorizationFile: /nowhere/at/all\n`,
    [':4:22: introspection.authorizationFile: /nowhere/at/all: no such file or directory'],
  ],
  [
    'a version that is no date',
    `${upstream}\napiVersions: { known: [v3] }\n`,
    [':2:24: apiVersions.known.0: must be a date such as 2022-11-28, not "v3"'],
  ],
  [
    'an unknown limit in shadow mode',
    `${upstream}\nshadow: [primary, pints]\n`,
    [
      ':2:19: shadow.1: must be one of primary, points, concurrent, cpu, graphql-cpu, content-minute, content-hour, not "pints"',
    ],
  ],
];

for (const [what, text, problems] of wrong) {
  test(`refused with its place: ${what}`, () => {
    assert.deepEqual(problemsOf(text), problems);
  });
}

test('a setting that is gone is told with its fixed value', () => {
  const problems = problemsOf(`${upstream}\nstore: { flushMs: 10 }\n`);

  assert.deepEqual(problems, [':2:10: store.flushMs: is no setting any more: it is 200']);
  assert.deepEqual(problemsOf(`${upstream}\nidentities: { repositories: { r: { user: ada } } }\n`), [
    ':2:36: identities.repositories.r.user: is no setting any more: it had no effect',
  ]);
  assert.deepEqual(
    problemsOf(
      `${upstream}\nidentities: { users: { bob: {} }, tokens: [{ kind: personal, user: bob, sha256: '${HASH}' }] }\n`,
    ),
    [
      ':2:46: identities.tokens.0.kind: is no setting any more: the kind follows from user, installation or repository, and from the kind of the app',
    ],
  );
});

test('problems in JSON have their place too', () => {
  const problems = problemsOf('{\n  "upstream": "ftp://x",\n  "limits": {"user": "many"}\n}\n', 'json');

  assert.deepEqual(problems, [
    ':3:22: limits.user: must be integer, not "many"',
    ':2:15: upstream: http://host:port, https://host:port or unix:/path is expected, not "ftp://x"',
  ]);
});

test('a file that cannot be parsed names the place, and no missing settings', () => {
  const problems = problemsOf(`${upstream}\nlimits: [1,\n`);

  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? '', /^:3:1: /);
});

test('everything that is wrong is said at once, whatever kind it is of', () => {
  const unknown = Array.from({ length: 20 }, (_, index) => `key${index}: 1`);

  const problems = problemsOf(
    `${upstream}\ntrustProxy: [banana]\nlimits: { user: many }\nlisten: nowhere\nidentities: { users: { eve: { orgs: [x] } } }\n${unknown.join('\n')}\n`,
  );

  assert.equal(problems.length, 24);
  for (const name of ['limits.user', 'trustProxy.0', 'listen', 'identities.users.eve.orgs.0', 'key0', 'key19']) {
    assert.equal(problems.filter((problem) => problem.includes(` ${name}: `)).length, 1, name);
  }
});

test('a setting that depends on a wrong one is not called wrong too', () => {
  const problems = problemsOf(`${upstream}
store: { kind: mysql, path: /x }
identities:
  users: { bob: {} }
  apps: { ci: { owner: 3, kind: oauth } }
  tokens: [{ sha256: '${HASH}', user: bob, app: ci }]`);

  assert.deepEqual(
    problems.map((problem) => problem.split(': ', 2)[1]),
    ['store.kind', 'identities.apps.ci.owner'],
  );
});

test('a flag and the file must not set the same', () => {
  const file = fileWith(upstream);

  assert.throws(
    () => readConfig(file, new Map([['upstream', { flag: '--upstream', value: 'http://127.0.0.1:4000' }]])),
    { problems: [`--upstream: ${file} sets upstream too`] },
  );
});

test('a problem of a flag names the flag', () => {
  const flags = new Map<string, { flag: string; value: unknown }>([
    ['upstream', { flag: '--upstream', value: 'x' }],
    ['listen', { flag: '--listen', value: ['nowhere'] }],
    ['workers', { flag: '--workers', value: 'many' }],
  ]);

  assert.throws(() => readConfig(undefined, flags), {
    problems: [
      '--workers: must be integer, not "many"',
      '--upstream: http://host:port, https://host:port or unix:/path is expected, not "x"',
      '--listen: address:port or unix:/path is expected, not "nowhere"',
    ],
  });
});
