import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ipText } from '../../lib/notations/ip-address.ts';
import { AddressLeases, macOf } from './address-leases.ts';
import { cidrText, parseCidr, type Cidr } from './cidr.ts';
import { chooseSubnet, parseBip, parsePool } from './subnets.ts';

const range = (text: string): Cidr => parseCidr(text)!.range;

test('the first range that overlaps nothing is chosen', () => {
  const table: readonly [taken: string[], chosen: string][] = [
    [[], '172.17.0.0/16'],
    [['172.17.0.0/16'], '172.18.0.0/16'],
    [['172.17.200.0/24', '172.18.0.1/32'], '172.19.0.0/16'],
    [['172.16.0.0/12'], '192.168.0.0/20'],
    [['172.16.0.0/12', '192.168.0.0/24'], '192.168.16.0/20'],
  ];

  const chosen = table.map(([taken]) => cidrText(chooseSubnet(taken.map(range))));

  assert.deepEqual(
    chosen,
    table.map(([, subnet]) => subnet),
  );
});

test('a machine that uses every private range is told to name one', () => {
  assert.throws(() => chooseSubnet([range('172.16.0.0/12'), range('192.168.0.0/16')]), /available, non-overlapping/);
});

test('the subnets of a setting are taken one after the other', () => {
  const pools = parsePool('base=10.9.0.0/16,size=24');

  assert.equal(pools.length, 256);
  assert.equal(cidrText(chooseSubnet([range('10.9.0.0/23')], pools)), '10.9.2.0/24');
  for (const text of ['', 'base=10.9.0.0/16', 'base=x,size=24', 'base=10.9.0.0/16,size=8', 'base=10.0.0.0/8,size=31']) {
    assert.throws(() => parsePool(text), { kind: 'invalid' });
  }
});

test('addresses are chosen in the range, static ones in the whole subnet', () => {
  const leases = new AddressLeases(range('10.0.0.0/24'), ['10.0.0.1'], range('10.0.0.252/30'));

  const chosen = [leases.take(), leases.take(), leases.take()];

  assert.deepEqual(chosen, ['10.0.0.252', '10.0.0.253', '10.0.0.254']);
  assert.throws(() => leases.take(), { kind: 'failed' });
  assert.equal(leases.take('10.0.0.9'), '10.0.0.9');
  leases.release('10.0.0.9');
  assert.throws(() => leases.take(), { kind: 'failed' });
  leases.release('10.0.0.253');
  assert.equal(leases.take(), '10.0.0.253');
});

test('bip gives the gateway and its range', () => {
  const { subnet, gateway } = parseBip('10.1.2.3/24');

  assert.equal(cidrText(subnet), '10.1.2.0/24');
  assert.equal(ipText(gateway), '10.1.2.3');
});

test('a bip outside of a usable range is refused', () => {
  for (const bip of [
    '10.0.0.0/24',
    '10.0.0.255/24',
    '10.0.0.1',
    '10.0.0.1/33',
    '10.0.0.1/31',
    'x/24',
    '10.0.0.256/24',
  ]) {
    assert.throws(() => parseBip(bip), { kind: 'invalid' }, bip);
  }
});

test('the lowest free address comes first and returns to its place', () => {
  const leases = new AddressLeases(range('10.0.0.0/29'), ['10.0.0.1']);

  const first = [leases.take(), leases.take(), leases.take()];
  leases.release('10.0.0.3');
  const then = [leases.take(), leases.take()];

  assert.deepEqual(first, ['10.0.0.2', '10.0.0.3', '10.0.0.4']);
  assert.deepEqual(then, ['10.0.0.3', '10.0.0.5']);
});

test('a full range says so, and serves again after a release', () => {
  const leases = new AddressLeases(range('10.0.0.0/30'), ['10.0.0.1']);
  leases.take();

  assert.throws(() => leases.take(), { kind: 'failed', message: /no available IPv4 addresses/ });

  leases.release('10.0.0.2');
  assert.equal(leases.take(), '10.0.0.2');
});

test('an address of one’s own choice is inside, free and no name of the range', () => {
  const leases = new AddressLeases(range('10.0.0.0/29'), ['10.0.0.1']);

  assert.equal(leases.take('10.0.0.5'), '10.0.0.5');
  assert.throws(() => leases.take('10.0.0.5'), { kind: 'forbidden' });
  for (const ip of ['10.0.0.0', '10.0.0.7']) assert.throws(() => leases.take(ip), { kind: 'forbidden' });
  for (const ip of ['10.0.0.8', 'x']) assert.throws(() => leases.take(ip), { kind: 'invalid' });
});

test('the MAC address spells the address', () => {
  assert.equal(macOf('172.17.0.2'), '02:42:ac:11:00:02');
});
