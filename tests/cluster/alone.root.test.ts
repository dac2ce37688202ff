import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

/** A daemon gives background work 15 s when it ends; a busy machine takes some more. */
const END_MS = 40_000;

suite('one of two managers starts alone, so that its etcd answers nothing', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(2);
    [one, two] = all.hosts;
    await one!.init();
    await two!.join(one!, 'Manager');
    // Until its etcd votes, the first is a majority alone.
    await one!.node('host2', ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    await startAlone();
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function startAlone(): Promise<void> {
    await Promise.all([one!.powerOff(), two!.powerOff()]);
    await one!.powerOn();
  }

  test('it says why it neither reads nor writes', async () => {
    const read = await one!.engine.get<{ message: string }>('/nodes');
    const written = await one!.engine.post<{ message: string }>('/services/create', { Name: 'never' });

    for (const { status, body } of [read, written]) {
      assert.equal(status, 500);
      assert.match(body.message, /^The swarm does not have a leader\. .*too few managers are online/);
    }
  });

  test('its daemon ends in order, and the next one leads or follows once the other is there', async () => {
    const started = performance.now();

    await one!.engine.kill('SIGTERM');

    const tookMs = performance.now() - started;
    assert.ok(tookMs < END_MS, `${tookMs} ms`);
    await one!.engine.startAgain();
    await two!.powerOn();
    for (const { name } of all.hosts) await one!.node(name, ({ Status }) => Status.State === 'ready');
    await one!.updateNode('host1', { Labels: { both: 'again' } });
  });

  test('it leaves by force', async () => {
    await startAlone();
    const started = performance.now();

    const answer = await one!.engine.post('/swarm/leave?force=1');

    const tookMs = performance.now() - started;
    assert.equal(answer.status, 200);
    assert.ok(tookMs < END_MS, `${tookMs} ms`);
    assert.equal((await one!.info()).LocalNodeState, 'inactive');
  });
});
