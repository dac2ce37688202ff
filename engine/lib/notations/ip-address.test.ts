import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ipBytes, ipOfBytes, ipText, parseIp } from './ip-address.ts';

const FORMS: readonly (readonly [written: string, shown: string])[] = [
  ['0.0.0.0', '0.0.0.0'],
  ['172.17.0.1', '172.17.0.1'],
  ['255.255.255.255', '255.255.255.255'],
  ['::', '::'],
  ['::1', '::1'],
  ['1::', '1::'],
  ['FD00:0:0:1::0077', 'fd00:0:0:1::77'],
  ['fd00:0:0:0:0:0:0:1', 'fd00::1'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
  ['10:0:0:20::', '10:0:0:20::'],
  ['::ffff:192.0.2.1', '::ffff:c000:201'],
  ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
];

test('addresses are read in every form, and shown in the usual one', () => {
  for (const [written, shown] of FORMS) {
    assert.equal(ipText(parseIp(written)!), shown);
    assert.equal(ipOfBytes(ipBytes(written)), shown);
  }
});

test('invalid addresses are not read', () => {
  for (const text of [
    '',
    'x',
    '1.2.3',
    '1.2.3.256',
    '1.2.3.4.5',
    ':',
    ':::',
    '1::2::3',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7',
    '::1/64',
  ]) {
    assert.equal(parseIp(text), undefined, text);
    assert.throws(() => ipBytes(text));
  }
});
