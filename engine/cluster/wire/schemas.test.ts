import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { lazyCheck } from '../../lib/lazy-check.ts';
import { FromLeader, PeerAnswer, PeerRequest, Refusal } from './schemas.ts';

const ID = 'n'.repeat(25);
const NOW = '2026-01-01T00:00:00Z';
const ADDRESS = '192.0.2.1:2377';
const RAFT = {
  ...{ snapshotInterval: 1, keepOldSnapshots: 0, logEntriesForSlowFollowers: 0, heartbeatTick: 1, electionTick: 10 },
};

const welcome = { say: 'welcome', periodMs: 5000, managers: [{ id: ID, address: ADDRESS }], role: 'worker' };
const assignment = {
  ...{ id: ID, service: ID, serviceName: 'web', slot: 1, desired: 'running', template: `${ID}/hash` },
  addresses: [{ network: ID, address: '10.0.1.5/24' }],
};
const tasks = (over: object): object => {
  const made = { container: { image: 'busybox' }, networks: [{ target: ID, aliases: ['www'] }] };
  const task = { assignment: { ...assignment, ...over }, state: 'assigned' };
  return { say: 'tasks', templates: { [`${ID}/hash`]: made }, tasks: [task], gone: [] };
};
const network = (over: object, local = '192.0.2.1'): object => {
  const subnets = [{ subnet: '10.0.1.0/24', gateway: '10.0.1.1', auxiliary: { printer: '10.0.1.2' } }];
  const rest = { labels: {}, options: {}, internal: false, ingress: false, vni: 4097, subnets };
  const whole = { network: { id: ID, name: 'front', createdAt: NOW, ...rest, ...over }, local };
  return { say: 'network', news: { id: ID, whole, members: [{}], gone: [] } };
};
const peers = (over: object): object => {
  const members = [{ name: ID, peerUrl: 'https://192.0.2.1:2378', ...over }];
  return { members, certificate: 'c', ca: 'c', crl: '', raft: RAFT };
};

type Row = readonly [message: object, isGood: boolean];
const LEADER: readonly Row[] = [
  [welcome, true],
  [{ ...welcome, managers: [{ id: ID, address: '[2001:db8::1]:2377' }] }, true],
  [{ ...welcome, managers: [{ id: ID, address: 'host.example:2377' }] }, false],
  [{ ...welcome, managers: [{ id: ID, address: '192.0.2.1:2377/../x' }] }, false],
  [{ ...welcome, managers: [{ id: '../../x', address: ADDRESS }] }, false],
  [{ ...welcome, periodMs: 0 }, false],
  [{ ...welcome, periodMs: -1 }, false],
  [tasks({}), true],
  [{ ...tasks({}), templates: { [`${ID}/hash`]: { container: { mounts: [{ type: 'of a later version' }] } } } }, true],
  [tasks({ serviceName: '' }), true],
  [tasks({ serviceName: 'a/b' }), false],
  [tasks({ serviceName: 'a\nb' }), false],
  [tasks({ id: '../x' }), false],
  [tasks({ slot: -1 }), false],
  [tasks({ slot: 1.5 }), false],
  [tasks({ addresses: [{ network: ID, address: '10.0.1.5' }] }), false],
  [tasks({ addresses: [{ network: ID, address: 'zzz/24' }] }), false],
  [tasks({ addresses: [{ network: '..', address: '10.0.1.5/24' }] }), false],
  [{ say: 'networks', ids: ['..'] }, false],
  [network({}), true],
  [network({}, 'zzz'), false],
  [network({ id: '../x' }), false],
  [network({ name: 'a b' }), false],
  [network({ createdAt: 'never' }), false],
  [network({ vni: 0 }), false],
  [network({ vni: 2 ** 24 }), false],
  [network({ subnets: [{ subnet: 'zzz', gateway: '10.0.1.1' }] }), false],
  [network({ subnets: [{ subnet: '10.0.1.0/24', gateway: 'zzz' }] }), false],
];

suite('messages on port 2377', () => {
  const leader = lazyCheck(FromLeader);
  for (const [message, isGood] of LEADER) {
    test(`a node ${isGood ? 'takes' : 'refuses'} ${JSON.stringify(message).slice(0, 300)}`, () => {
      assert.equal(leader.Check(message), isGood);
    });
  }

  test('places of etcd are an address and a port', () => {
    const request = lazyCheck(PeerRequest);
    const answer = lazyCheck(PeerAnswer);
    const peer = { address: ADDRESS, url: 'https://192.0.2.1:2378', publicKey: 'p' };

    assert.ok(request.Check(peer));
    assert.ok(answer.Check(peers({})));
    assert.ok(answer.Check(peers({ name: '' })));
    for (const url of ['https://host:1', 'http://192.0.2.1:2378', 'https://192.0.2.1:2378,x=https://192.0.2.9:1']) {
      assert.equal(request.Check({ ...peer, url }), false, url);
      assert.equal(answer.Check(peers({ peerUrl: url })), false, url);
    }
    assert.equal(request.Check({ ...peer, address: 'zzz' }), false);
    assert.equal(answer.Check(peers({ name: `x=https://192.0.2.9:1,${ID}` })), false);
  });

  test('a manager that does not lead names an address, or nobody', () => {
    const refusal = lazyCheck(Refusal);

    for (const leader of [ADDRESS, null]) assert.ok(refusal.Check({ leader }));
    assert.equal(refusal.Check({ leader: 'evil.example' }), false);
  });
});
