import assert from 'node:assert/strict';
import { test } from 'node:test';

import { unshare } from '../../../host/namespaces.ts';
import { Nftables } from '../../../host/network/nftables.ts';
import { Firewall } from './firewall.ts';
import type { BridgeRules } from './ruleset.ts';

// This thread leaves the machine's network for good: nothing here can touch its rules.
unshare('net');

test('rules that are flushed while they are being written are written again at the next look', () => {
  using nft = new Nftables();
  using theirs = new Nftables();
  let isFlushing = false;
  const network: BridgeRules = {
    // It is read before the writing, and between the writing and the last look at the rules.
    get bridge() {
      if (isFlushing) theirs.run('flush ruleset; add table ip theirs');
      return 'mine0';
    },
    subnet: '10.1.0.0/16',
    subnet6: undefined,
    gateways: ['10.1.0.1'],
    isForeign: false,
    isInternal: false,
    allowsTraffic: true,
    isMasqueraded: true,
    modes: { 4: 'nat', 6: 'nat' },
    trusted: [],
  };
  using firewall = new Firewall('mine', () => ({ networks: [network], published: [], closed: [], places: [] }));
  isFlushing = true;
  firewall.write();
  isFlushing = false;
  assert.equal(nft.list('list table ip mine'), undefined);

  firewall.verify();

  assert.notEqual(nft.list('list table ip mine'), undefined);
});
