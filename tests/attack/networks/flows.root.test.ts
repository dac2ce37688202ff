import assert from 'node:assert/strict';
import { closeSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { newNetns } from '@gantry/engine/host/namespaces.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { RawContainer } from '@gantry/testing/networks/raw-container.ts';
import { datagram, frame, packetOfFour, RawLink } from '@gantry/testing/networks/raw-frames.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const OUTSIDE = '198.51.100.7';
const FLOWS = 2000;
const MAX_FLOWS = 100;

/** The rule that docs/security.md names keeps one container from filling the machine's connection tracking. */
suite('a container that begins flows without end', { concurrency: false }, () => {
  let engine: TestEngine;
  let cable: RawLink;
  let [attacker, other]: RawContainer[] = [];
  let mac = '';
  let count = 0;

  before(async () => {
    engine = await TestEngine.start();
    const netns = newNetns();
    const add = `ip link add uplink type veth peer name cable netns /proc/${process.pid}/fd/${netns}`;
    await host(`${add}; ip link set uplink up; ip address add 192.0.2.1/24 dev uplink`);
    cable = new RawLink(netns, 'cable', { up: true });
    closeSync(netns);
    await host(`ip neighbour add 192.0.2.9 lladdr ${cable.mac} dev uplink; ip route add default via 192.0.2.9`);
    [attacker, other] = await Promise.all([1, 2].map(async () => await RawContainer.run(engine, 'bridge')));
    mac = /ether (\S+)/.exec(await host('ip link show gantry0'))![1]!;
  });
  after(async () => {
    for (const box of [attacker, other]) box?.[Symbol.dispose]();
    cable[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function host(script: string): Promise<string> {
    return await engine.onHost(['sh', '-ec', script]);
  }

  function send({ ip, link }: RawContainer, port: number, body: Buffer): void {
    const packet = packetOfFour({ from: ip, to: OUTSIDE }, 'udp', datagram(port, 5000, body));
    link.send(frame('ip', { from: link.mac, to: mac }, packet));
  }

  /** A new flow of a container gets outside. */
  async function getsOutside(box: RawContainer): Promise<void> {
    const mark = Buffer.from(`flow ${(count += 1)}.`);
    await eventually('the flow is outside', async () => {
      send(box, 50_000 + count, mark);
      return await Promise.resolve(cable.hasSeen(mark) || undefined);
    });
  }

  async function flows(): Promise<number> {
    return Number(await host('cat /proc/sys/net/netfilter/nf_conntrack_count'));
  }

  async function attack(): Promise<void> {
    for (let port = 10_000; port < 10_000 + FLOWS; port += 1) send(attacker!, port, Buffer.alloc(0));
    await getsOutside(other!); // the frames before have been handled
  }

  test('has as many of them as the operator allows, and others begin theirs', async () => {
    const rule = `ip saddr ${attacker!.ip} ct state new ct count over ${MAX_FLOWS} drop`;
    await host(
      `nft 'add table ip own; add chain ip own flows { type filter hook forward priority -1; }; add rule ip own flows ${rule}'`,
    );
    await attack();
    const limited = await flows();
    await host('nft delete table ip own');
    await attack();

    assert.ok(limited <= MAX_FLOWS + 50, `${limited} flows with the rule`);
    assert.ok((await flows()) >= FLOWS, `${await flows()} flows without it`);
  });
});
