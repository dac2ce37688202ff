import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { finish, RetryingClient } from '@gantry/testing/cluster/retrying-client.ts';
import { eventually } from '@gantry/testing/eventually.ts';

suite('roles change under clients that write', { concurrency: false }, () => {
  let all: ClusterHosts;
  before(async () => {
    all = await ClusterHosts.cluster(3, 1, { image: true });
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function manages(host: ClusterHost, wanted: boolean): Promise<void> {
    await eventually(`${host.name} ${wanted ? 'manages' : 'is a worker'}`, async () => {
      const { status, raw } = await host.engine.get('/nodes');
      if (status !== (wanted ? 200 : 406)) throw new Error(`GET /nodes answered ${status}: ${raw.toString()}`);
      return true;
    });
  }

  /** By the first manager that can. */
  async function change(host: ClusterHost, Role: 'manager' | 'worker'): Promise<void> {
    await eventually(`${host.name} is to be a ${Role}`, async () => {
      const by = await anyManager();
      const { ID, Version, Spec } = await by.node(host.name);
      const answer = await by.engine.post(`/nodes/${ID}/update?version=${Version.Index}`, { ...Spec, Role });
      if (answer.status !== 200) throw new Error(`it answered ${answer.status}: ${answer.raw.toString()}`);
      return true;
    });
    await manages(host, Role === 'manager');
  }

  async function anyManager(): Promise<ClusterHost> {
    return await eventually('a manager', async () => {
      for (const host of all.hosts) if ((await host.engine.get('/nodes')).status === 200) return host;
      return undefined;
    });
  }

  test('a worker becomes a manager, each leader a worker and a manager again: no write is lost or done twice', async (context) => {
    const clients = ['a', 'b'].map((name) => new RetryingClient(all.hosts, name));
    const over = new AbortController();
    context.after(() => over.abort()); // also after a failure: the clients would go on for ever
    const running = clients.map(async (client) => await client.run(over.signal));
    const goOn = async (): Promise<void> => {
      const before = clients.map(({ acknowledged }) => acknowledged);
      await eventually('writes go on', async () =>
        clients.every(({ acknowledged }, index) => acknowledged > before[index]! + 1) ? true : undefined,
      );
    };

    await change(all.hosts[3]!, 'manager');
    await goOn();
    for (let count = 1; count <= 2; count += 1) {
      const former = await all.leader();
      await change(former, 'worker');
      await goOn();
      await change(former, 'manager');
      await goOn();
    }
    over.abort();
    await Promise.all(running);

    assert.deepEqual(await finish(clients, await all.leader()), []);
    for (const { acknowledged, repeated, gapMs } of clients)
      context.diagnostic(`${acknowledged} writes, ${repeated} repeated, ${gapMs.toFixed(0)} ms apart`);
  });
});
