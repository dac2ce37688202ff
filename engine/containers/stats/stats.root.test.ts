import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { jsonLines } from '@gantry/client/json-lines.ts';
import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { Stats } from './schema.ts';

/** Fields that dockerd has had since 1.52, and we at every version. */
const LATER = { os_type: 'linux' };
const NEVER = '0001-01-01T00:00:00Z';

/** A stream of samples; leaving it closes the connection. */
class Watch implements Disposable {
  readonly #left = new AbortController();
  readonly #samples: Promise<AsyncGenerator<Stats>>;

  constructor(api: Api, ref: string) {
    this.#samples = api
      .stream('GET', `/containers/${ref}/stats`, { signal: this.#left.signal })
      .then((stream) => jsonLines<Stats>(stream.on('error', () => undefined)));
  }

  /** The next sample; undefined at the end. */
  async next(): Promise<Stats | undefined> {
    const { value, done } = await (await this.#samples).next();
    return done === true ? undefined : value;
  }

  async until(fits: (sample: Stats) => boolean): Promise<Stats> {
    for (;;) {
      const sample = await this.next();
      assert.ok(sample !== undefined, 'the stream has ended');
      if (fits(sample)) return sample;
    }
  }

  [Symbol.dispose](): void {
    this.#left.abort();
  }
}

suite('statistics of containers', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [engine, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start()]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await dockerd[Symbol.asyncDispose]();
  });

  const one = async (api: Api, ref: string): Promise<Stats> =>
    (await api.get<Stats>(`/containers/${ref}/stats?stream=0`)).body;

  test('a sample has every key of dockerd’s, of containers in each state', async () => {
    const sleep = ['sleep', '1000'];
    const kinds: Record<string, { Cmd: string[]; HostConfig?: object; next?: 'pause' | 'wait' | 'none' }> = {
      limited: { Cmd: sleep, HostConfig: { Memory: 64 << 20, PidsLimit: 50, CpuQuota: 50_000 } },
      free: { Cmd: sleep },
      paused: { Cmd: sleep, next: 'pause' },
      host: { Cmd: sleep, HostConfig: { NetworkMode: 'host' } },
      lonely: { Cmd: sleep, HostConfig: { NetworkMode: 'none' } },
      guest: { Cmd: sleep, HostConfig: { NetworkMode: 'container:free' } },
      ended: { Cmd: ['true'], next: 'wait' },
      created: { Cmd: sleep, next: 'none' },
    };
    const made = async (api: Api): Promise<Record<string, Stats>> => {
      for (const [name, { next, ...body }] of Object.entries(kinds)) {
        await api.post(`/containers/create?name=${name}`, { Image: 'busybox', ...body });
        if (next !== 'none') await api.post(`/containers/${name}/start`);
        if (next === 'pause' || next === 'wait') await api.post(`/containers/${name}/${next}`);
      }
      const samples = Object.keys(kinds).map(async (name) => [name, await one(api, name)] as const);
      return Object.fromEntries(await Promise.all(samples));
    };

    const [ours, theirs] = await Promise.all([made(engine), made(dockerd.api)]);

    for (const name of Object.keys(kinds)) {
      const [own, other] = [new Set(shapeOf(ours[name])), shapeOf(theirs[name])];
      assert.deepEqual(
        other.filter((key) => !own.has(key)),
        [],
        name,
      );
      assert.deepEqual(ours[name]!.networks === undefined, theirs[name]!.networks === undefined, name);
    }
    for (const name of ['ended', 'created']) {
      assert.deepEqual({ ...ours[name], id: '' }, { ...theirs[name], id: '', ...LATER });
    }
    assert.equal(ours.limited!.memory_stats.limit, 64 << 20);
    assert.equal(ours.limited!.pids_stats.limit, theirs.limited!.pids_stats.limit);
    assert.equal(ours.free!.memory_stats.limit, theirs.free!.memory_stats.limit);
    assert.equal(ours.free!.cpu_stats.online_cpus, theirs.free!.cpu_stats.online_cpus);
  });

  test('figures are those of the container: CPU time, memory, processes, packets, precpu', async () => {
    const script = 'dd if=/dev/zero of=/dev/shm/x bs=1M count=20 2>/dev/null; sleep 999 & while :; do :; done';
    const id = await engine.run(['sh', '-c', script], {}, 'busy');
    using watch = new Watch(engine, id);

    const first = await watch.next();
    const used = await watch.until(
      ({ memory_stats, pids_stats }) => memory_stats.usage! > 20e6 && pids_stats.current! > 1,
    );
    const sample = await watch.next();

    assert.equal(first?.preread, NEVER);
    assert.equal(first.precpu_stats.system_cpu_usage, undefined);
    assert.deepEqual(sample?.precpu_stats, used.cpu_stats);
    assert.equal(sample.preread, used.read);
    const cpu = (of: Stats['cpu_stats']): number => of.cpu_usage.total_usage;
    assert.ok(cpu(sample.cpu_stats) > cpu(sample.precpu_stats));
    assert.ok(sample.cpu_stats.system_cpu_usage! > sample.precpu_stats.system_cpu_usage!);
    assert.ok(sample.networks!.eth0!.rx_bytes >= 0);
    assert.equal(sample.name, '/busy');
    assert.equal(sample.num_procs, 0);
  });

  test('a stream goes on with zeros when the container stops, with figures when it starts, and ends with it', async () => {
    const id = await engine.run(['sleep', '1000'], {}, 'stops');
    using watch = new Watch(engine, 'stops');
    await watch.until(({ pids_stats }) => pids_stats.current === 1);

    await engine.post(`/containers/${id}/stop?t=0`);
    const stopped = await watch.until(({ read }) => read === NEVER);
    await engine.post(`/containers/${id}/rename?name=renamed`);
    await engine.post(`/containers/${id}/start`);
    const again = await watch.until(({ pids_stats }) => pids_stats.current === 1);
    await engine.delete(`/containers/${id}?force=1`);
    while ((await watch.next()) !== undefined);

    assert.deepEqual([stopped.memory_stats, stopped.name], [{}, '/stops']);
    assert.deepEqual([again.preread, again.name], [NEVER, '/renamed']);
  });

  test('between two runs of a restart policy all is 0, as in dockerd', async () => {
    const restarting = { Cmd: ['false'], HostConfig: { RestartPolicy: { Name: 'always' } } };
    const zero = async (api: Api): Promise<Stats> => {
      await api.post('/containers/create?name=again', { Image: 'busybox', ...restarting });
      await api.post('/containers/again/start');
      using watch = new Watch(api, 'again');
      return await watch.until(({ read }) => read === NEVER);
    };

    const [ours, theirs] = await Promise.all([zero(engine), zero(dockerd.api)]);

    // The one before may be a reading of the run.
    const neutral = { id: '', preread: '', precpu_stats: {} };
    assert.deepEqual({ ...ours, ...neutral }, { ...theirs, ...neutral, ...LATER });
  });

  test('many watchers get the same readings', async () => {
    const id = await engine.run(['sleep', '1000']);
    const watches = Array.from({ length: 40 }, () => new Watch(engine, id));
    await Promise.all(watches.map(async (watch) => await watch.next()));

    const seen = await Promise.all(
      watches.map(async (watch) => new Set((await several(watch, 3)).map(({ read }) => read))),
    );

    // All have at least one in common, which separate readings never have.
    const common = seen.reduce((all, reads) => all.union(reads)).size;
    for (const watch of watches) watch[Symbol.dispose]();
    assert.ok(common < 40, `${common} readings`);
  });

  test('a client that reads nothing holds up nobody, and misses readings', async () => {
    const id = await engine.run(['sleep', '1000']);
    const slow = await engine.open('GET', `/containers/${id}/stats`);
    slow.pause();
    using watch = new Watch(engine, id);

    const samples = await several(watch, 3);
    slow.destroy();

    assert.equal(new Set(samples.map(({ read }) => read)).size, 3);
  });

  test('older clients get the sum of all networks', async () => {
    const id = await engine.run(['sleep', '1000']);
    using older = new Api(engine.socketPath, '/v1.20');

    const sample = (await one(older, id)) as Stats & { network: Record<string, number> };
    using watch = new Watch(older, id);
    const streamed = (await watch.next()) as Stats & { network: Record<string, number> };

    for (const { network, networks, name } of [sample, streamed]) {
      assert.deepEqual([networks, name], [undefined, undefined]);
      assert.equal(Object.keys(network).length, 8);
    }
  });

  test('a container that is removed while one sample is read is no longer there', async () => {
    const id = await engine.run(['sleep', '1000']);

    const [sample] = await Promise.all([
      engine.get(`/containers/${id}/stats?stream=0`),
      engine.delete(`/containers/${id}?force=1`),
    ]);

    assert.ok([200, 404].includes(sample.status));
  });

  test('docker stats shows figures of named containers and of all', async () => {
    await engine.run(['sleep', '1000'], {}, 'shown');

    for (const names of [['shown'], []]) {
      const { stdout, code } = await engine.docker('stats', '--no-stream', '--format', '{{json .}}', ...names);
      const rows = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, string>);
      const row = rows.find(({ Name }) => Name === 'shown');
      assert.equal(code, 0);
      assert.match(row?.CPUPerc ?? '', /^[\d.]+%$/);
      assert.match(row?.MemUsage ?? '', /iB \/ [\d.]+GiB$/);
      assert.equal(row?.PIDs, '1');
    }
  });
});

async function several(watch: Watch, count: number): Promise<Stats[]> {
  const samples: Stats[] = [];
  while (samples.length < count) {
    const sample = await watch.next();
    assert.ok(sample !== undefined);
    samples.push(sample);
  }
  return samples;
}

/** The paths of all keys; lists are one, as devices are in them only once the container has read from a disk. */
function shapeOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return [path];
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, part]) => shapeOf(part, `${path}.${key}`));
}
