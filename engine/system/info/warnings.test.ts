import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { warningsOf } from './warnings.ts';

const machine = {
  ...{ MemoryLimit: true, SwapLimit: true, CpuCfsQuota: true, CpuCfsPeriod: true, CPUShares: true, CPUSet: true },
  ...{ OomKillDisable: true, CgroupVersion: '1', IPv4Forwarding: true },
};
const local = { hosts: ['unix:///run/x.sock', 'tcp://127.0.0.1:2375'], tls: false, tlsverify: false };

suite('warnings of GET /info', () => {
  test('a machine with all limits and a local socket has none', () => {
    assert.deepEqual(warningsOf(machine, local), []);
  });

  test('missing limits are named; version 2 of cgroups never disables the OOM killer', () => {
    const poor = { ...machine, SwapLimit: false, OomKillDisable: false, IPv4Forwarding: false };

    assert.deepEqual(warningsOf(poor, local), [
      'WARNING: No swap limit support',
      'WARNING: No oom kill disable support',
      'WARNING: IPv4 forwarding is disabled',
    ]);
    assert.deepEqual(warningsOf({ ...poor, CgroupVersion: '2', IPv4Forwarding: true }, local), [
      'WARNING: No swap limit support',
    ]);
  });

  const cases: [tls: boolean, tlsverify: boolean, words: string | undefined][] = [
    [false, false, 'http://0.0.0.0:2375 without encryption'],
    [true, false, 'https://0.0.0.0:2375 without TLS client verification'],
    [true, true, undefined],
  ];
  for (const [tls, tlsverify, words] of cases) {
    test(`TCP for all addresses with tls=${tls}, tlsverify=${tlsverify}: ${words}`, () => {
      const warnings = warningsOf(machine, { hosts: ['tcp://0.0.0.0:2375'], tls, tlsverify });

      assert.deepEqual(
        warnings.map((warning) => warning.split('.\n')[0]),
        words === undefined ? [] : [`WARNING: API is accessible on ${words}`],
      );
    });
  }
});
