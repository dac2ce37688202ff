import assert from 'node:assert/strict';
import { test } from 'node:test';

import { etcdFlags, firstFlags, type EtcdSettings } from './flags.ts';
import { findEtcd } from './process.ts';

const RAFT = {
  snapshotInterval: 5,
  keepOldSnapshots: 0,
  logEntriesForSlowFollowers: 500,
  heartbeatTick: 1,
  electionTick: 10,
};
const settings = (raft: object = {}): EtcdSettings => ({
  name: 'one',
  place: { program: '/usr/bin/etcd', data: '/data', peers: '/peers', run: '/run' },
  listen: '10.0.0.1:2378',
  advertise: '10.0.0.2:2378',
  raft: { ...RAFT, ...raft },
  quotaBytes: 1024,
  history: '1m',
});

test('without etcd the refusal names the package', () => {
  assert.throws(() => findEtcd('/nowhere:/etc/hostname'), {
    kind: 'failed',
    message: /install the package etcd-server/,
  });
});

test('ticks are tenths of a second, and an election takes five heartbeats at least and 50 s at most', () => {
  const cases: [heartbeat: number, election: number, flags: string][] = [
    [1, 10, '--heartbeat-interval=100 --election-timeout=1000'],
    [3, 1, '--heartbeat-interval=300 --election-timeout=1500'],
    [0, 0, '--heartbeat-interval=100 --election-timeout=500'],
    [1, 10_000, '--heartbeat-interval=100 --election-timeout=50000'],
    [10_000, 1, '--heartbeat-interval=10000 --election-timeout=50000'],
  ];

  for (const [heartbeatTick, electionTick, expected] of cases) {
    const flags = etcdFlags(settings({ heartbeatTick, electionTick })).filter((flag) => /interval|timeout/.test(flag));
    assert.equal(flags.join(' '), expected);
  }
});

test('it listens where the cluster does, and clients reach it by a socket in its folder only', () => {
  const flags = etcdFlags(settings());

  assert.ok(flags.includes('--listen-peer-urls=https://10.0.0.1:2378'));
  assert.ok(flags.includes('--initial-advertise-peer-urls=https://10.0.0.2:2378'));
  assert.ok(flags.includes('--listen-client-urls=unix://client:0'));
  assert.ok(flags.includes('--peer-client-cert-auth'));
});

test('only a first start is told the members, or that it goes on alone', () => {
  const members = [
    { name: 'one', peerUrl: 'https://10.0.0.1:2378' },
    { name: 'two', peerUrl: 'https://10.0.0.2:2378' },
  ];

  assert.deepEqual(firstFlags({ state: 'existing', members }), [
    '--initial-cluster-state=existing',
    '--initial-cluster=one=https://10.0.0.1:2378,two=https://10.0.0.2:2378',
  ]);
  assert.deepEqual(firstFlags('forced'), ['--force-new-cluster']);
  assert.deepEqual(firstFlags(undefined), []);
});
