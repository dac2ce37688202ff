import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { hasCode } from '@gantry/engine/lib/errors.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('settings of raft', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [first, second]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.cluster(3, 0);
    [first, second] = all.hosts;
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function update(raft: object): Promise<void> {
    const { Version, Spec } = await first!.swarm();
    const answer = await first!.engine.post(`/swarm/update?version=${Version.Index}`, { ...Spec, Raft: raft });
    assert.equal(answer.status, 200, answer.raw.toString());
  }

  /** Empty while etcd does not run. */
  async function flagsOf(host: ClusterHost): Promise<string> {
    let words: string[] = [];
    try {
      words = readFileSync(`/proc/${await host.etcdPid()}/cmdline`, 'utf8').split('\0');
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ESRCH')) throw error;
    }
    return words.filter((word) => /^--(?:heartbeat|election|snapshot-count|max-snapshots)/.test(word)).join(' ');
  }

  test('new settings are stored, and a running etcd goes on', async () => {
    const before = await flagsOf(first!);
    const pid = await first!.etcdPid();

    await update({ HeartbeatTick: 2, ElectionTick: 20, SnapshotInterval: 500, KeepOldSnapshots: 3 });

    const { Raft } = (await first!.swarm()).Spec as { Raft?: Record<string, number> };
    assert.deepEqual([Raft?.['HeartbeatTick'], Raft?.['ElectionTick'], Raft?.['SnapshotInterval']], [2, 20, 500]);
    assert.deepEqual([await first!.etcdPid(), await flagsOf(first!)], [pid, before]);
  });

  test('an etcd that starts again has the new settings', async () => {
    await first!.node('host1'); // has the update
    process.kill(await first!.etcdPid(), 'SIGKILL');

    const flags = '--heartbeat-interval=200 --election-timeout=2000 --snapshot-count=500 --max-snapshots=3';
    await eventually('the new flags', async () => ((await flagsOf(first!)) === flags ? true : undefined));
    await first!.updateNode('host1', { Labels: { written: 'yes' } });
  });

  test('a daemon that starts again takes over an etcd with the old settings', async () => {
    const pid = await second!.etcdPid();

    await second!.engine.kill();
    await second!.engine.startAgain();

    await first!.node('host2', ({ Status }) => Status.State === 'ready');
    assert.equal(await second!.etcdPid(), pid);
  });
});
