import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { jsonLines } from '@gantry/client/json-lines.ts';
import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from './schema.ts';

const UNTIL_KILLED = ['sh', '-c', 'echo ready; while :; do sleep 0.02; done'];

async function told(api: Api): Promise<EventMessage[]> {
  const until = String(Math.ceil(Date.now() / 1000) + 1);
  const { raw } = await api.get('/events', { query: { since: '0', until } });
  const lines = raw.toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as EventMessage);
}

/** Waits until this is told. */
async function heard(stream: Readable, wanted: (event: EventMessage) => boolean): Promise<void> {
  for await (const event of jsonLines<EventMessage>(stream)) if (wanted(event)) return;
  assert.fail('the stream of events has ended');
}

/** Does something, and waits for the event that comes later than its answer. */
async function until(api: Api, action: string, work: () => Promise<unknown>): Promise<void> {
  const stream = await api.stream('GET', '/events', { signal: AbortSignal.timeout(60_000) });
  await work();
  await heard(stream, ({ Action }) => Action.startsWith(action));
  stream.destroy();
}

async function ofContainers(api: Api): Promise<void> {
  const body = {
    Image: 'busybox',
    Cmd: UNTIL_KILLED,
    Labels: { tier: 'front' },
    Tty: true,
    HostConfig: { NetworkMode: 'none', Binds: ['data:/data'] },
  };
  const { Id: id } = (await api.post<{ Id: string }>('/containers/create?name=web-1', body)).body;
  const post = async (path: string, sent?: unknown): Promise<void> => {
    const { status, raw } = await api.post(`/containers/${id}/${path}`, sent);
    assert.ok(status < 400, `${path}: ${raw.toString()}`);
  };
  await post('start');
  const signal = AbortSignal.timeout(60_000);
  while (!(await api.get(`/containers/${id}/logs?stdout=1`)).raw.includes('ready')) {
    await setTimeout(20, undefined, { signal });
  }
  await post('resize?h=20&w=30');
  await api.get(`/containers/${id}/top`);
  const exec = await api.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['echo', 'hi'], AttachStdout: true });
  await until(api, 'exec_die', async () => await api.post(`/exec/${exec.body.Id}/start`, {}));
  await post('pause');
  await post('unpause');
  await post('update', { CpuShares: 100 });
  await post('rename?name=web-2');
  await api.get(`/containers/${id}/export`);
  await post('kill?signal=USR1');
  await post('restart?t=0');
  await post('stop?t=0');
  await api.delete(`/containers/${id}`);
}

async function ofOthers(api: Api): Promise<void> {
  await api.post('/images/busybox/tag?repo=other&tag=1');
  await api.get('/images/other:1/get');
  await api.delete('/images/other:1');
  await api.post('/volumes/create', { Name: 'memory', DriverOpts: { type: 'tmpfs', device: 'tmpfs' } });
  await api.delete('/volumes/memory');
  await api.delete('/volumes/data');
}

async function work(api: Api): Promise<EventMessage[]> {
  await api.post('/images/load?quiet=1', await busyboxArchive());
  await api.post('/volumes/create', { Name: 'data', Labels: { of: 'volume' } });
  await ofContainers(api);
  await ofOthers(api);
  return await told(api);
}

/** dockerd's words for archives, and the specification's at 1.24. */
const COPIES = new Map(['archive-path', 'extract-to-dir'].map((action) => [action, 'copy']));

/**
 * Events that do not differ by chance. dockerd tells of the creation of a volume that is there when a container names it, and
 * of a mount for each copy; at times it tells a pause and its end a second time, when containerd reports them late.
 */
function comparable(events: readonly EventMessage[]): unknown[] {
  const copying = events.findIndex(({ Action }) => Action === 'export');
  const isOfVolume = ({ Type, Action, Actor }: EventMessage): boolean =>
    Type === 'volume' && Action === 'create' && Actor.ID === 'data';
  const created = events.findIndex(isOfVolume);
  const isToldBefore = ({ Action }: EventMessage, at: number): boolean =>
    ['pause', 'unpause'].includes(Action) && events.slice(0, at).some((event) => event.Action === Action);
  const rows = events.map((event, at) => {
    const isAgain = (isOfVolume(event) && at > created) || isToldBefore(event, at);
    const isOfCopy = event.Type === 'volume' && Math.abs(at - copying) === 1;
    if (isAgain || isOfCopy) return [];
    const { Type, Actor, scope, from } = event;
    const [Action, status] = [event.Action, event.status].map((text) => COPIES.get(text ?? '') ?? text);
    const attributes = Object.entries(Actor.Attributes).map(([name, value]) => {
      const isChance = ['container', 'execID'].includes(name);
      return [name, isChance ? 'chance' : value];
    });
    return [{ Type, Action, scope, status, from, attributes: Object.fromEntries(attributes) }];
  });
  return rows.flat();
}

test("a list of operations makes dockerd's events, with all attributes, in its order", async () => {
  await using ours = await TestEngine.start({ image: false });
  await using dockerd = await Dockerd.start(['--bridge=none']);

  const [mine, theirs] = [await work(ours), await work(dockerd.api)];

  assert.deepEqual(comparable(mine), comparable(theirs));
  const times = mine.map(({ timeNano }) => timeNano);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
});

test('a thousand listeners all hear of everything, in order, beside one that does not read', async () => {
  await using engine = await TestEngine.start({ image: false });
  const filters = JSON.stringify({ type: ['volume'] });
  // A client opens 256 connections at most.
  using clients = new DisposableStack();
  const apis = Array.from({ length: 5 }, () => clients.use(new Api(engine.socketPath)));
  const open = async (at: number): Promise<Readable> =>
    await apis[at % apis.length]!.stream('GET', '/events', { query: { filters } });
  const deaf = await open(0);
  deaf.pause();
  const names = Array.from({ length: 5 }, (_, n) => `volume-${n}`);
  const streams: Readable[] = [];
  while (streams.length < 1000) {
    streams.push(...(await Promise.all(Array.from({ length: 50 }, async (_, at) => await open(at)))));
  }
  assert.equal((await engine.get<{ NEventsListener: number }>('/info')).body.NEventsListener, 1001);

  const readers = streams.map(async (stream) => {
    const seen: string[] = [];
    for await (const event of jsonLines<EventMessage>(stream)) if (seen.push(event.Actor.ID) === names.length) break;
    return seen;
  });
  for (const Name of names) assert.equal((await engine.post('/volumes/create', { Name })).status, 201);

  for (const seen of await Promise.all(readers)) assert.deepEqual(seen, names);
  deaf.destroy();
});
