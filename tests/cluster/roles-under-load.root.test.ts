import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { RetryingClient } from '@gantry/testing/cluster/retrying-client.ts';
import { Services } from '@gantry/testing/cluster/services.ts';

suite('roles change under clients that write', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three, four]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(4, { image: true });
    [one, two, three, four] = all.hosts;
    await one!.init();
    await Promise.all([two!, three!].map(async (host) => await host.join(one!, 'Manager')));
    await four!.join(one!, 'Worker');
    for (const host of [two!, three!]) await manages(host, true);
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function manages(host: ClusterHost, wanted: boolean): Promise<void> {
    await eventually(`${host.name} ${wanted ? 'manages' : 'is a worker'}`, async () => {
      const { status } = await host.engine.get('/nodes');
      return status === (wanted ? 200 : 406) ? true : undefined;
    });
  }

  /** By the first manager that can. */
  async function change(host: ClusterHost, Role: 'manager' | 'worker'): Promise<void> {
    await eventually(`${host.name} is to be a ${Role}`, async () => {
      const by = await anyManager();
      const { ID, Version, Spec } = await by.node(host.name);
      const answer = await by.engine.post(`/nodes/${ID}/update?version=${Version.Index}`, { ...Spec, Role });
      return answer.status === 200 ? true : undefined;
    });
    await manages(host, Role === 'manager');
  }

  async function anyManager(): Promise<ClusterHost> {
    return await eventually('a manager', async () => {
      for (const host of all.hosts) if ((await host.engine.get('/nodes')).status === 200) return host;
      return undefined;
    });
  }

  async function leader(): Promise<ClusterHost> {
    return await eventually('a leader', async () => {
      const found = (await (await anyManager()).nodes()).find(({ ManagerStatus }) => ManagerStatus?.Leader === true);
      return all.hosts.find(({ name }) => name === found?.Description.Hostname);
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

    await change(four!, 'manager');
    await goOn();
    for (let count = 1; count <= 2; count += 1) {
      const former = await leader();
      await change(former, 'worker');
      await goOn();
      await change(former, 'manager');
      await goOn();
    }
    over.abort();
    await Promise.all(running);

    const manager = await leader();
    for (const client of clients) {
      await client.compare(manager);
      context.diagnostic(
        `${client.acknowledged} writes, ${client.repeated} repeated, ${client.gapMs.toFixed(0)} ms apart`,
      );
    }
    assert.deepEqual(
      clients.flatMap(({ problems }) => problems),
      [],
    );
    const services = new Services(manager);
    for (const name of clients.flatMap((client) => [...client.services])) {
      await services.running(name, 1);
      await services.remove(name);
    }
  });
});
