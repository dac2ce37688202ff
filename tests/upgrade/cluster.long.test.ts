import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { RetryingClient } from '@gantry/testing/cluster/retrying-client.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { Traffic } from '@gantry/testing/cluster/traffic.ts';
import { makeWebImage, POLITE_WEB } from '@gantry/testing/cluster/web.ts';
import { eventually } from '@gantry/testing/eventually.ts';

import { NOW, removeRelease, unpackRelease } from './older-release.ts';

/** The commit to upgrade from: the first with all of a cluster's parts. It has to be in the repository's history. */
const FROM = process.env.GANTRY_UPGRADE_FROM ?? 'fa8f3d2';
const PORT = 8080;

/** `./gantry test tests/upgrade`: the sources of then are unpacked and built first. */
suite('a cluster is upgraded machine by machine', { concurrency: false }, () => {
  let then: string;
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    then = unpackRelease(FROM);
    all = await ClusterHosts.start(3, { image: true, sources: then });
    [one, two, three] = all.hosts;
    // Nobody is down, however slow this machine is.
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 100e9 } } });
    await Promise.all([two!, three!].map(async (host) => await host.join(one!, 'Manager')));
    for (const host of [two!, three!])
      await eventually(`${host.name} manages`, async () => ((await host.nodes()).length === 3 ? true : undefined));
    await Promise.all(all.hosts.map(async ({ engine }) => await makeWebImage(engine)));
  });
  after(async () => {
    await all[Symbol.asyncDispose]();
    removeRelease(then);
  });

  test('tasks run on, no request to them and no write fails for good, and all is there under the new version', async (context) => {
    const services = new Services(one!);
    const EndpointSpec = { Ports: [{ Protocol: 'tcp', TargetPort: 80, PublishedPort: PORT }] };
    await services.create(
      'web',
      { Image: 'web', Command: POLITE_WEB, Env: ['VERSION=1'] },
      {
        EndpointSpec,
        Mode: { Replicated: { Replicas: 3 } },
      },
    );
    const before = (await services.running('web', 3)).map(({ ID }) => ID).toSorted();
    const urls = all.hosts.map(({ ip }) => `http://${ip}:${PORT}/`);
    await eventually('the port on all machines', async () => {
      await one!.engine.onHost(['curl', '-sf', '-m', '5', ...urls]);
      return true;
    });
    await using traffic = new Traffic(one!.engine.netns, urls);
    const client = new RetryingClient(all.hosts, 'a');
    const over = new AbortController();
    const running = client.run(over.signal);

    for (const host of all.hosts) {
      await host.engine.kill('SIGTERM');
      host.engine.sources = NOW;
      await host.engine.startAgain();
      await eventually(`${host.name} is back`, async () => ((await host.nodes()).length === 3 ? true : undefined));
      const done = client.acknowledged;
      await eventually('writes go on', async () => (client.acknowledged > done + 1 ? true : undefined));
    }
    for (const { name } of all.hosts)
      await one!.node(name, ({ Status, ManagerStatus }) => {
        return Status.State === 'ready' && ManagerStatus?.Reachability === 'reachable';
      });
    over.abort();
    await running;

    const { ok, failed, reasons } = await traffic.end();
    context.diagnostic(
      `${ok + failed} requests, ${client.acknowledged} writes, ${client.gapMs.toFixed(0)} ms between two`,
    );
    assert.deepEqual([failed, reasons], [0, {}]);
    await client.compare(one!);
    assert.deepEqual(client.problems, []);
    const after = await services.running('web', 3);
    const history = JSON.stringify(await services.tasks('web'));
    assert.deepEqual(after.map(({ ID }) => ID).toSorted(), before, history);
    await services.update('web', (spec) => {
      const { ContainerSpec, ...template } = spec.TaskTemplate as { ContainerSpec: object };
      return { ...spec, TaskTemplate: { ...template, ContainerSpec: { ...ContainerSpec, Env: ['VERSION=2'] } } };
    });
    await eventually('an update', async () => {
      const { body } = await one!.engine.get<{ UpdateStatus?: { State: string } }>('/services/web');
      return body.UpdateStatus?.State === 'completed' ? true : undefined;
    });
    for (const name of ['web', ...client.services]) await services.remove(name);
  });
});
