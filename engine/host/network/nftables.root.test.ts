import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { unshare } from '../namespaces.ts';
import { NftError, Nftables } from './nftables.ts';

// This thread leaves the machine's network for good: nothing here can touch its rules.
unshare('net');

const TRANSACTIONS = 500;

test('signals do not interrupt a transaction', async () => {
  using nft = new Nftables();
  nft.run('flush ruleset\nadd table ip t\nadd set ip t s { type ipv4_addr; }');
  let signals = 0;
  const count = (): void => void (signals += 1);
  process.on('SIGWINCH', count);
  const sender = spawn('sh', ['-c', 'while kill -WINCH $PPID; do :; done'], { stdio: 'ignore' });
  const ended = once(sender, 'exit');

  try {
    for (let number = 0; number < TRANSACTIONS; number += 1) {
      const element = `10.0.${number >> 8}.${number & 255}`;
      nft.run(`add element ip t s { ${element} }`);
      nft.run(`delete element ip t s { ${element} }`);
      await setImmediate(); // Node has room for 4,096 signals, and would lose the end of the child
    }
  } finally {
    sender.kill();
    await ended;
    process.off('SIGWINCH', count);
  }

  assert.ok(signals > 0);
});

test('output of a failed command is not part of the next answer', () => {
  using nft = new Nftables();
  nft.run('flush ruleset\nadd table ip one');

  assert.throws(() => nft.run('list table ip one\ndelete table ip nosuch'), NftError);

  assert.deepEqual(
    nft.list('list tables')?.flatMap(({ table }) => table?.name ?? []),
    ['one'],
  );
});

test('a change is not told again, for which all elements of all sets would be read before', () => {
  using nft = new Nftables();
  nft.run('flush ruleset\nadd table ip t\nadd set ip t s { type ipv4_addr; }');

  assert.equal(nft.run('add element ip t s { 10.0.0.1 }'), '');
  assert.equal(nft.run('delete element ip t s { 10.0.0.1 }'), '');
});
