import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, suite, test } from 'node:test';

import { BothEngines } from '../clients/both-engines.ts';
import { said } from './said.ts';

/** Trials of parts of the kernel that not every kernel has, with their fields of HostConfig. */
const TRIALS: readonly (readonly [string, string, Record<string, unknown>, RegExp])[] = [
  ['no user namespace in an ordinary container', 'unshare -U -r id -u; echo $?', {}, /not permitted\n1\n$/],
  [
    'one where no filter refuses it',
    'unshare -U -r id -u; echo $?',
    { SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'] },
    /^0\n0\n$/,
  ],
  [
    'one in a privileged container, with a user of its own',
    'unshare -U id -u; echo $?',
    { Privileged: true },
    /^65534\n0\n$/,
  ],
  [
    'a link of the kind ipvlan where the network may be administered',
    'ip link add link eth0 name v0 type ipvlan; ip -o link show v0 | grep -c v0',
    { NetworkMode: 'bridge', CapAdd: ['NET_ADMIN'] },
    /^1\n$/,
  ],
  [
    'settings of ip_vs, which each network namespace has',
    'cat /proc/sys/net/ipv4/vs/conntrack; ls /proc/net/ip_vs',
    { NetworkMode: 'bridge' },
    /^0\n\/proc\/net\/ip_vs\n$/,
  ],
];

suite('parts of a distribution’s kernel', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    execFileSync('modprobe', ['-a', 'ipvlan', 'ip_vs']);
    engines = await BothEngines.start();
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [what, script, HostConfig, expected] of TRIALS) {
    test(`${what}, as with dockerd`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await said(side, script, HostConfig));

      assert.equal(ours, theirs);
      assert.match(ours, expected);
    });
  }
});
