import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const CLIENTS = 6;
const RELOADS = 12;

for (const workers of [1, 2]) {
  test(`reloads amid requests lose no answer and no count (${workers} workers)`, async () => {
    await using one = await TestUpstream.start();
    await using other = await TestUpstream.start();
    const settings = (number: number): Settings => ({
      upstream: number % 2 === 0 ? one.url : other.url,
      workers,
      limits: { anonymous: 1_000_000 + number },
      secondary: { restPoints: { limit: 'off' }, contentPerMinute: { limit: 'off' }, contentPerHour: { limit: 'off' } },
      ...(number % 3 === 0 ? {} : { networks: [{ name: `n${number}`, ranges: ['192.0.2.0/24'], limit: number }] }),
    });
    await using gateway = await TestGateway.start(settings(0));
    const statuses = new Map<number, number>();
    const over = new AbortController();
    const ask = async (client: number): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n += 1) {
        const path = n % 7 === 0 ? '/graphql' : `/things/${n % 5}`;
        const sends = (n + client) % 3 === 0;
        const { status } = await gateway.request(path, sends ? { method: 'POST', body: '{"query":"{ a }"}' } : {});
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: CLIENTS }, async (_, client) => await ask(client));

    for (let number = 1; number <= RELOADS; number += 1) {
      const asked = sum(statuses);
      const lines = gateway.log.length;
      gateway.write(settings(number));
      gateway.signal('SIGHUP');
      await gateway.logged('the settings were reloaded', lines);
      await eventually('requests go on', () => sum(statuses) >= asked + CLIENTS);
    }
    over.abort();
    await Promise.all(clients);

    assert.deepEqual([...statuses.keys()], [200]);
    assert.ok(one.received.length > 0 && other.received.length > 0);
    assert.equal(one.received.length + other.received.length, sum(statuses));
    const { windows, underWay } = await askCaller(gateway.adminSocket, 'ip:127.0.0.1');
    const spent = windows.filter(({ name }) => name === 'core' || name === 'graphql');
    assert.equal(
      spent.reduce((all, { used }) => all + used, 0),
      sum(statuses),
    );
    assert.equal(underWay, 0);
    assert.deepEqual(
      gateway.log.filter(({ level }) => level >= 40).map(({ msg }) => msg),
      [],
    );
  });
}

function sum(counts: ReadonlyMap<number, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0);
}
