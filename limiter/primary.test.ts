import assert from 'node:assert/strict';
import { test } from 'node:test';

import { addressGroup, type CallerFacts, callerFrom, defaultPrimaryLimits } from './primary.ts';

const enterprise = { id: 'corp', enterprise: true };
const plain = { id: 'club', enterprise: false };
const installation = { kind: 'installation', installationId: '9', hosted: false } as const;

const rows: [string, CallerFacts, string, number][] = [
  ['an address', { kind: 'anonymous', address: '192.0.2.1' }, 'ip:192.0.2.1', 60],
  ['a personal token', { kind: 'user', userId: '1', memberOf: ['corp'] }, 'user:1', 5000],
  ["a platform app of nobody's", { kind: 'user', userId: '1', app: { kind: 'platform' } }, 'user:1', 5000],
  [
    "an ordinary organization's platform app",
    { kind: 'user', userId: '1', app: { kind: 'platform', owner: plain } },
    'user:1',
    5000,
  ],
  [
    "an enterprise's platform app, member or not",
    { kind: 'user', userId: '1', app: { kind: 'platform', owner: enterprise } },
    'user:1',
    15_000,
  ],
  [
    'a platform app that an enterprise only approved',
    { kind: 'user', userId: '1', memberOf: ['corp'], app: { kind: 'platform', approvedBy: [enterprise] } },
    'user:1',
    5000,
  ],
  [
    "an enterprise's OAuth app, member",
    { kind: 'user', userId: '1', memberOf: ['corp'], app: { kind: 'oauth', owner: enterprise } },
    'user:1',
    15_000,
  ],
  [
    "an enterprise's OAuth app, not a member",
    { kind: 'user', userId: '1', memberOf: ['club'], app: { kind: 'oauth', owner: enterprise } },
    'user:1',
    5000,
  ],
  [
    'an OAuth app approved by an enterprise, member',
    { kind: 'user', userId: '1', memberOf: ['corp'], app: { kind: 'oauth', owner: plain, approvedBy: [enterprise] } },
    'user:1',
    15_000,
  ],
  [
    'an OAuth app approved by an ordinary organization, member',
    { kind: 'user', userId: '1', memberOf: ['club'], app: { kind: 'oauth', approvedBy: [plain] } },
    'user:1',
    5000,
  ],
  ['a small installation', { ...installation, repositories: 20, users: 20 }, 'installation:9', 5000],
  ['21 repositories: each of them adds', { ...installation, repositories: 21, users: 0 }, 'installation:9', 6050],
  ['21 users: each of them adds', { ...installation, repositories: 1, users: 21 }, 'installation:9', 6050],
  ['both', { ...installation, repositories: 30, users: 40 }, 'installation:9', 8500],
  ['just below the cap', { ...installation, repositories: 149, users: 0 }, 'installation:9', 12_450],
  ['never above the cap', { ...installation, repositories: 500, users: 500 }, 'installation:9', 12_500],
  ['hosted', { ...installation, hosted: true, repositories: 1, users: 1 }, 'installation:9', 15_000],
  ['client credentials', { kind: 'oauth-client', appId: 'a', owner: plain }, 'app:a', 5000],
  ["an enterprise's client credentials", { kind: 'oauth-client', appId: 'a', owner: enterprise }, 'app:a', 15_000],
  ['a workflow', { kind: 'workflow', repositoryId: '5', enterprise: false }, 'workflow:5', 1000],
  ["an enterprise's workflow", { kind: 'workflow', repositoryId: '5', enterprise: true }, 'workflow:5', 15_000],
];

for (const [name, facts, key, limit] of rows) {
  test(`the primary limit of ${name} is ${limit}`, () => {
    const caller = callerFrom(facts);

    assert.deepEqual([caller.key, caller.limit], [key, limit]);
  });
}

test('other numbers can be configured', () => {
  const limits = { ...defaultPrimaryLimits, anonymous: 3 };

  assert.equal(callerFrom({ kind: 'anonymous', address: '192.0.2.1' }, limits).limit, 3);
});

const addresses: [string, number, string][] = [
  ['192.0.2.1', 64, '192.0.2.1'],
  ['::ffff:192.0.2.1', 64, '192.0.2.1'],
  ['::FFFF:192.0.2.1', 64, '192.0.2.1'],
  ['0:0:0:0:0:ffff:c000:201', 64, '192.0.2.1'],
  ['2001:db8::1', 64, '2001:db8:0:0/64'],
  ['2001:DB8:0:0:ffff::2', 64, '2001:db8:0:0/64'],
  ['2001:db8:1:2ff:3::', 56, '2001:db8:1:200/56'],
  ['2001:db8::1', 128, '2001:db8:0:0:0:0:0:1/128'],
  ['fe80::1%eth0', 64, 'fe80:0:0:0/64'],
  ['::1', 128, '0:0:0:0:0:0:0:1/128'],
];

for (const [address, bits, group] of addresses) {
  test(`the address ${address} counts as ${group}`, () => {
    assert.equal(addressGroup(address, bits), group);
  });
}
