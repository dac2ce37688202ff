import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { Traffic } from '@gantry/testing/cluster/traffic.ts';
import { HASTY_WEB, makeWebImage, POLITE_WEB } from '@gantry/testing/cluster/web.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const SECOND = 1e9;

/** A daemon that stands still for two seconds at a time, until disposed: in between it answers once. */
class Halts implements AsyncDisposable {
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;

  constructor({ engine }: ClusterHost) {
    this.#done = this.#run(engine);
  }

  async #run(engine: ClusterHost['engine']): Promise<void> {
    while (!this.#ended.signal.aborted) {
      process.kill(engine.pid, 'SIGSTOP');
      await sleep(2000);
      process.kill(engine.pid, 'SIGCONT');
      await engine.get('/info');
      await sleep(100);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#done;
  }
}

suite('updates under requests', { concurrency: false }, () => {
  let all: ClusterHosts;
  let one: ClusterHost;
  let services: Services;
  before(async () => {
    all = await ClusterHosts.start(3, { image: true });
    [one] = all.hosts as [ClusterHost];
    await one.init();
    await Promise.all(all.hosts.slice(1).map(async (host) => await host.join(one, 'Worker')));
    await Promise.all(all.hosts.map(async ({ engine }) => await makeWebImage(engine)));
    services = new Services(one);
  });
  after(async () => await all[Symbol.asyncDispose]());

  /** Replaces five tasks under requests to their published port on all machines; not one may fail. */
  async function replaced(
    container: object,
    UpdateConfig: object,
    { path = '', slow }: { path?: string; slow?: ClusterHost } = {},
  ): Promise<void> {
    const spec = (version: string): object => ({ Image: 'web', Env: [`VERSION=${version}`], ...container });
    const EndpointSpec = { Ports: [{ Protocol: 'tcp', TargetPort: 80, PublishedPort: 8080 }] };
    const more = { EndpointSpec, UpdateConfig, Mode: { Replicated: { Replicas: 5 } } };
    await services.create('web', spec('1'), more);
    await services.running('web', 5);
    const urls = all.hosts.map(({ ip }) => `http://${ip}:8080/${path}`);
    await eventually('the port on all machines', async () => {
      await one.engine.onHost(['curl', '-sf', '-m', '5', ...urls]);
      return true;
    });
    await using traffic = new Traffic(one.engine.netns, urls);
    await using _halts = slow === undefined ? undefined : new Halts(slow);

    await services.update('web', (before) => ({
      ...before,
      TaskTemplate: { ...(before.TaskTemplate as object), ContainerSpec: spec('2') },
    }));
    await eventually('the end of the update', async () => {
      const { body } = await one.engine.get<{ UpdateStatus?: { State: string } }>('/services/web');
      return body.UpdateStatus?.State === 'completed' ? true : undefined;
    });

    const { ok, failed, reasons, pages } = await traffic.end();
    assert.deepEqual([failed, reasons], [0, {}], `of ${ok + failed}`);
    assert.deepEqual(Object.keys(pages).toSorted(), ['1', '2'], JSON.stringify(pages));
    await services.remove('web');
    await eventually('no task', async () => {
      const { body } = await one.engine.get<unknown[]>('/tasks');
      return body.length === 0 ? true : undefined;
    });
  }

  test('of tasks that end at once no request fails: each takes no new ones before it is told to', async () => {
    await replaced({ Command: HASTY_WEB }, { Parallelism: 2, Monitor: SECOND });
  });

  test('all tasks at once, the new ones first: no request fails', async () => {
    await replaced({ Command: HASTY_WEB }, { Parallelism: 0, Monitor: SECOND, Order: 'start-first' });
  });

  test('requests that take longer than that end within the grace period of a task that goes on serving', async () => {
    await replaced(
      { Command: POLITE_WEB, StopGracePeriod: 60 * SECOND },
      { Parallelism: 3, Monitor: SECOND },
      { path: 'cgi-bin/slow' },
    );
  });

  test('of tasks that end no request fails over a machine with a late daemon', async () => {
    await replaced({ Command: HASTY_WEB }, { Parallelism: 2, Monitor: SECOND }, { slow: all.hosts[2]! });
  });
});
