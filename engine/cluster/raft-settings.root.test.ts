import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

type Outage = { from: number; until: number };

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

  async function flagsOf(host: ClusterHost): Promise<string> {
    const words = readFileSync(`/proc/${await host.etcdPid()}/cmdline`, 'utf8').split('\0');
    return words.filter((word) => /^--(?:heartbeat|election|snapshot-count|max-snapshots)/.test(word)).join(' ');
  }

  test('members start again with other ones, one by one, while the cluster is written to', async () => {
    await update({ HeartbeatTick: 2, ElectionTick: 20, SnapshotInterval: 500, KeepOldSnapshots: 3 });

    const wanted = '--heartbeat-interval=200 --election-timeout=2000 --snapshot-count=500 --max-snapshots=3';
    let written = 0;
    for (const host of all.hosts) {
      await eventually(`the flags of ${host.name}`, async () => {
        written += 1;
        await first!.updateNode('host1', { Labels: { written: String(written) } });
        return (await flagsOf(host)) === wanted ? true : undefined;
      });
    }
    const outages = await eventually('all are back', async () => {
      const found = await Promise.all(
        all.hosts.map(async ({ engine }) => await Promise.resolve(outagesIn(engine.log))),
      );
      return found.flat().length === 3 ? found.flat() : undefined;
    });

    outages.sort((one, other) => one.from - other.from);
    for (const [index, { from }] of outages.entries()) {
      assert.ok(index === 0 || from >= outages[index - 1]!.until, JSON.stringify(outages));
    }
    const { Labels } = (await first!.node('host1')).Spec;
    assert.deepEqual(Labels, { written: String(written) });
  });

  test('a daemon that starts again takes over the etcd that has them', async () => {
    const pid = await second!.etcdPid();

    await second!.engine.kill();
    await second!.engine.startAgain();

    await first!.node('host2', ({ Status }) => Status.State === 'ready');
    assert.equal(await second!.etcdPid(), pid);
  });
});

/** When etcd went, and was back with other settings. */
function outagesIn(log: string): Outage[] {
  const lines = log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { msg: string; time: number | string });
  const at = (msg: string): number[] =>
    lines.filter((line) => line.msg === msg).map(({ time }) => new Date(time).getTime());
  const ends = at('etcd runs with its new settings');
  return at('etcd starts again, as its settings have changed').flatMap((from, index) =>
    ends[index] === undefined ? [] : [{ from, until: ends[index] }],
  );
}
