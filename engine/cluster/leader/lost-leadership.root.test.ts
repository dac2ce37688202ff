import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

import { systemClock } from '../../lib/clock.ts';
import { Etcd } from '../etcd/gateway.ts';
import { LEADER_KEY } from '../state/keys.ts';

const ROUNDS = 3;
const AT_ONCE = 8;

test('writes that a leader could not store any more are stored by the next one, once, and no client notices', async () => {
  await using all = await ClusterHosts.cluster(2, 0);
  const [one, two] = all.hosts as [ClusterHost, ClusterHost];
  using etcd = new Etcd(join(one.engine.directory, 'exec/etcd/client:0'), systemClock);

  for (let round = 0; round < ROUNDS; round += 1) {
    await etcd.store({}, [{ delete: LEADER_KEY }], 5000);
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, number) => {
        const { engine } = number % 2 === 0 ? one : two;
        const body = { Name: `s-${round}-${number}`, TaskTemplate: { ContainerSpec: { Image: 'busybox' } } };
        const { status, raw } = await engine.post('/services/create', {
          ...body,
          Mode: { Replicated: { Replicas: 0 } },
        });
        return status === 201 ? 201 : `${status} ${raw.toString()}`;
      }),
    );
    assert.deepEqual(new Set(answers), new Set([201]));
  }
  const services = await two.engine.get<object[]>('/services');
  assert.equal(services.body.length, ROUNDS * AT_ONCE);
});
