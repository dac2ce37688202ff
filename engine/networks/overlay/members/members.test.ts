import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { checkedMembers } from './members.ts';

const TASK = {
  kind: 'task',
  id: 't1',
  service: 's1',
  name: 'web.1.t1',
  ip: '10.0.1.5',
  host: '192.0.2.1',
  serves: true,
};
const SERVICE = { kind: 'service', id: 's1', name: 'web', aliases: ['www', 'any text'], vip: '10.0.1.2', ports: [] };
const NODE = { kind: 'node', id: 'n1', ip: '10.255.0.2', host: '2001:db8::1' };
const CONTAINER = {
  kind: 'container',
  id: 'c'.repeat(64),
  name: 'box',
  aliases: [],
  ip: '10.0.1.6',
  host: '192.0.2.2',
};

const BAD: readonly object[] = [
  { ...TASK, ip: 'zzz' },
  { ...TASK, ip: '10.0.1.5 drop' },
  { ...TASK, ip: '::1' },
  { ...TASK, host: 'zzz' },
  { ...TASK, host: '' },
  { ...TASK, name: 'evil\nname' },
  { ...TASK, id: '../t1' },
  { ...SERVICE, vip: '10.0.1.2; flush ruleset' },
  { ...SERVICE, name: 'a.b' },
  { ...SERVICE, aliases: ['x'.repeat(5000)] },
  { ...SERVICE, ports: [{ protocol: 'tcp', published: 80.5, target: 80 }] },
  { ...SERVICE, ports: [{ protocol: 'tcp', published: '80', target: 80 }] },
  { ...NODE, host: 'fe80::1%eth0' },
  { ...CONTAINER, name: 'a b' },
  { ...CONTAINER, id: '' },
  { kind: 'other' },
  {},
];

suite('members of a network, as the leader names them', () => {
  test('each good one is taken, whatever the others are', () => {
    const good = [TASK, SERVICE, NODE, CONTAINER];

    const { members, refused } = checkedMembers([...BAD, ...good]);

    assert.deepEqual(members, good);
    assert.equal(refused, BAD.length);
  });

  for (const member of BAD) {
    test(`${JSON.stringify(member).slice(0, 150)} is none`, () => {
      assert.deepEqual(checkedMembers([member]), { members: [], refused: 1 });
    });
  }
});
