import assert from 'node:assert/strict';
import { test } from 'node:test';

import { withChangedIds } from './named-ids.ts';

const up = { user: (id: number) => id + 1000, group: (id: number) => id + 2000 };
const down = { user: (id: number) => id - 1000, group: (id: number) => id - 2000 };

const PLAIN = Buffer.from(`01000002${'aa'.repeat(16)}`, 'hex');
const OF_1000 = Buffer.from(`01000003${'aa'.repeat(16)}e8030000`, 'hex');
const OF_1005 = Buffer.from(`01000003${'aa'.repeat(16)}ed030000`, 'hex');

/** Entries: the owner, user 5, the group, group 6, the mask. */
const LIST = Buffer.from(
  ['02000000', '01000600ffffffff', '0200040005000000', '04000400ffffffff', '0800040006000000', '10000600ffffffff'].join(
    '',
  ),
  'hex',
);

test('capabilities of a file belong to root of the map, and back', () => {
  assert.deepEqual(withChangedIds('security.capability', PLAIN, up), OF_1000);
  assert.deepEqual(withChangedIds('security.capability', OF_1000, down), PLAIN);
  assert.equal(withChangedIds('security.capability', OF_1005, down).readUInt32LE(20), 5);
});

test('users and groups of an access list change, other entries do not', () => {
  const changed = withChangedIds('system.posix_acl_access', LIST, up);
  assert.equal(changed.readUInt32LE(4 + 8 + 4), 1005);
  assert.equal(changed.readUInt32LE(4 + 3 * 8 + 4), 2006);
  assert.deepEqual(withChangedIds('system.posix_acl_access', changed, down), LIST);
});

test('other attributes, and values that are none, stay', () => {
  assert.deepEqual(withChangedIds('user.note', PLAIN, up), PLAIN);
  assert.deepEqual(withChangedIds('security.capability', PLAIN.subarray(1), up), PLAIN.subarray(1));
});
