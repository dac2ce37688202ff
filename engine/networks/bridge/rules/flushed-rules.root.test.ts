import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const PORT = 8301;

/** Nobody asks the daemon for anything here: it has to notice by itself. */
suite('rules that other programs remove come back at once', { concurrency: false }, () => {
  let engine: TestEngine;
  let tables: string;
  before(async () => {
    engine = await TestEngine.start();
    await engine.post('/networks/create', {
      Name: 'six',
      EnableIPv6: true,
      IPAM: { Config: [{ Subnet: 'fd00:6::/64' }] },
    });
    const HostConfig = { NetworkMode: 'six', PortBindings: { '80/tcp': [{ HostPort: String(PORT) }] } };
    await engine.run(['httpd', '-f', '-p', '80', '-h', '/etc'], { HostConfig });
    tables = await ownTables();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const host = async (command: string): Promise<string> => await engine.onHost(['sh', '-c', command]);

  /** The daemon's rules, without the counters. */
  async function ownTables(): Promise<string> {
    const text = await host('nft -s list ruleset');
    return text
      .split(/^(?=table )/m)
      .filter((table) => /^table (?:ip6?|bridge) gantry-/.test(table))
      .toSorted()
      .join('');
  }

  async function comeBack(): Promise<void> {
    const until = Date.now() + 60_000;
    while ((await ownTables()) !== tables && Date.now() < until) await setTimeout(20);
    assert.equal(await ownTables(), tables);
    assert.match(await engine.fetchText(PORT), /404/);
  }

  for (const command of [
    'nft flush ruleset',
    'nft delete table ip gantry-gantry0',
    'nft delete table ip6 gantry-gantry0',
    'nft flush table ip gantry-gantry0',
    'nft flush chain ip gantry-gantry0 postrouting',
    'nft flush chain ip6 gantry-gantry0 output',
    'nft flush set ip gantry-gantry0 bridges',
    'nft flush map ip gantry-gantry0 published',
    'nft delete table bridge gantry-gantry0',
    'nft flush chain bridge gantry-gantry0 claims',
    'nft flush set bridge gantry-gantry0 own6',
    'nft flush ruleset; nft flush ruleset; nft add table ip theirs',
  ]) {
    test(command, async () => {
      await host(command);

      await comeBack();
    });
  }

  test('a policy of DROP that a firewall sets afterwards stops nothing', async () => {
    await host(
      'nft flush ruleset; nft "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }"',
    );

    await comeBack();
    const until = Date.now() + 60_000;
    const admits = async (): Promise<boolean> =>
      /accept comment "gantry-/.test(await host('nft list chain ip filter FORWARD'));
    while (!(await admits()) && Date.now() < until) await setTimeout(20);
    assert.equal(await admits(), true);
  });

  test('tables of a firewall that loads itself again, as firewalld does, are left alone', async () => {
    const theirs =
      'table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; policy accept; ct state established,related accept; }; }';
    await host(`nft '${theirs}'; nft 'delete table inet firewalld; ${theirs}'`);

    await comeBack();
    assert.match(await host('nft list tables'), /table inet firewalld/);
  });
});
