import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';

import { jsonLines } from '@gantry/client/json-lines.ts';
import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from './schema.ts';

async function eventsOf(api: Api, query: Record<string, string>): Promise<EventMessage[]> {
  const { status, raw } = await api.get('/events', { query });
  assert.equal(status, 200, raw.toString());
  const lines = raw.toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as EventMessage);
}

/** dockerd tells of a volume's creation again when a container names it: once is enough. */
const words = (events: readonly EventMessage[]): string[] =>
  [...new Set(events.map(({ Type, Action }) => `${Type} ${Action}`))].toSorted();

async function openEvents(api: Api, query: Record<string, string> = {}): Promise<Readable> {
  return await api.stream('GET', '/events', { query });
}

/** Does the same work on both engines, whose events are compared. */
async function work(api: Api): Promise<void> {
  await api.post('/images/load?quiet=1', await busyboxArchive());
  await api.post('/volumes/create', { Name: 'data' });
  const body = {
    Image: 'busybox',
    Cmd: ['true'],
    Labels: { tier: 'front' },
    HostConfig: { NetworkMode: 'none', Binds: ['data:/data'] },
  };
  const { body: created } = await api.post<{ Id: string }>('/containers/create?name=web-1', body);
  await api.post(`/containers/${created.Id}/start`);
  await api.post(`/containers/${created.Id}/wait`);
  await api.post(`/containers/${created.Id}/rename?name=web-2`);
  await api.delete(`/containers/${created.Id}`);
  await api.post('/images/busybox/tag?repo=other&tag=1');
  await api.delete('/images/other:1');
  await api.delete('/volumes/data');
}

test('filters choose the events that dockerd chooses', async () => {
  await using ours = await TestEngine.start({ image: false });
  await using dockerd = await Dockerd.start(['--bridge=none']);
  await work(ours);
  await work(dockerd.api);
  const until = String(Math.ceil(Date.now() / 1000) + 1);

  for (const filters of [
    {},
    { type: ['container'] },
    { type: ['volume', 'network'] },
    { container: ['web-1'] },
    { container: ['web'] },
    { container: [''] },
    { volume: [''], network: [''] },
    { container: ['/web-1'] },
    { type: [''] },
    { image: ['busybox'] },
    { image: ['busybox:latest'] },
    { event: ['die'] },
    { event: ['start', 'tag'] },
    { event: ['st'] },
    { label: ['tier'] },
    { label: ['tier=back'] },
    { volume: ['data'] },
    { volume: ['dat'] },
    { network: ['none'] },
    { daemon: ['x'] },
    { plugin: ['x'] },
    { scope: ['swarm'] },
    { container: ['web-1'], event: ['die'] },
    { container: { 'web-1': true } },
  ]) {
    const query = { since: '0', until, filters: JSON.stringify(filters) };
    const [mine, theirs] = await Promise.all([eventsOf(ours, query), eventsOf(dockerd.api, query)]);
    assert.deepEqual(words(mine), words(theirs), JSON.stringify(filters));
    for (const event of mine) {
      const same = theirs.find(({ Type, Action }) => Type === event.Type && Action === event.Action);
      assert.deepEqual(Object.keys(event).toSorted(), Object.keys(same ?? {}).toSorted());
      const [keys, expected] = [event, same!].map(({ Actor }) => Object.keys(Actor.Attributes).toSorted());
      assert.deepEqual(keys, expected, `${event.Type} ${event.Action}`);
    }
  }
});

suite('since, until and live events', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ image: false });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const second = 1_000_000_000n;
  const fractions = (ns: bigint): string => `${ns / second}.${String(ns % second).padStart(9, '0')}`;
  const rfc3339 = (ns: bigint): string => new Temporal.Instant(ns).toString();

  test('bound the stream, in every form, to the nanosecond', async () => {
    for (const name of ['aa', 'bb', 'cc']) await engine.post('/volumes/create', { Name: name });
    const until = String(Math.ceil(Date.now() / 1000) + 1);
    const all = await eventsOf(engine, { since: '0', until });
    const times = all.map(({ timeNano }) => timeNano);
    assert.deepEqual(
      all.map(({ Actor }) => Actor.ID),
      ['aa', 'bb', 'cc'],
    );
    assert.ok(times[0]! < times[1]! && times[1]! < times[2]!);
    const text = (await engine.get('/events', { query: { since: '0', until } })).raw.toString();
    const [, ns] = [...text.matchAll(/"timeNano":(\d+)/g)].map(([, digits]) => BigInt(digits!));

    for (const form of [fractions, rfc3339]) {
      const from = await eventsOf(engine, { since: form(ns!), until });
      const upTo = await eventsOf(engine, { since: '0', until: form(ns!) });
      const after = await eventsOf(engine, { since: form(ns! + 1n), until });
      assert.deepEqual(
        from.map(({ Actor }) => Actor.ID),
        ['bb', 'cc'],
      );
      assert.deepEqual(
        upTo.map(({ Actor }) => Actor.ID),
        ['aa', 'bb'],
      );
      assert.deepEqual(
        after.map(({ Actor }) => Actor.ID),
        ['cc'],
      );
    }
    assert.equal((await eventsOf(engine, { since: '1h', until })).length, 3);
    assert.equal((await eventsOf(engine, { until })).length, 3);
    assert.deepEqual(await eventsOf(engine, { until: '1' }), []);
  });

  test('that contradict each other are refused, and so are texts that are no time', async () => {
    for (const [query, message] of [
      [{ since: '10', until: '5' }, '`since` time (10) cannot be after `until` time (5)'],
      [{ since: 'soon' }, 'invalid value for "since": soon'],
      [{ until: 'later' }, 'invalid value for "until": later'],
      [{ filters: '{"colour":["red"]}' }, "Invalid filter 'colour'"],
    ] as const) {
      const { status, body } = await engine.get('/events', { query });
      assert.deepEqual([status, body], [400, { message }]);
    }
  });

  test('events are told live, are kept over a restart, and a stream goes on from since into the present', async () => {
    const live = await openEvents(engine);
    await engine.post('/volumes/create', { Name: 'early' });
    for await (const event of jsonLines<EventMessage>(live)) {
      assert.equal(event.Actor.ID, 'early');
      break;
    }
    await engine.kill('SIGKILL');
    await engine.startAgain();

    // Until far beyond what a timer holds.
    const stream = await openEvents(engine, { since: '0', until: '99999999999' });
    const seen: string[] = [];
    for await (const event of jsonLines<EventMessage>(stream)) {
      if (!['early', 'late'].includes(event.Actor.ID)) continue;
      seen.push(event.Actor.ID);
      if (seen.length === 1) await engine.post('/volumes/create', { Name: 'late' });
      else break;
    }

    assert.deepEqual(seen, ['early', 'late']);
  });

  test('clients that go away leave neither listeners nor connections', async () => {
    const count = async (): Promise<number> =>
      (await engine.get<{ NEventsListener: number }>('/info')).body.NEventsListener;
    while ((await count()) > 0) await new Promise(setImmediate); // those of the tests before
    const streams = await Promise.all(Array.from({ length: 50 }, async () => await openEvents(engine)));
    assert.equal(await count(), 50);

    for (const stream of streams) stream.destroy();
    // Their ends arrive in any order; each look takes a round trip.
    while ((await count()) > 0) await new Promise(setImmediate);

    while ((await engine.get<{ NFd: number }>('/info')).body.NFd >= 60) await new Promise(setImmediate);
  });
});

test('the form of the answer is that of the version, or one that the client accepts', async () => {
  await using engine = await TestEngine.start({ image: false, version: '1.55' });
  await engine.post('/images/create?fromSrc=-&repo=empty', Buffer.alloc(1024));
  const rows: [prefix: string, accept: string | undefined, type: string, hasStatus: boolean, separator: string][] = [
    ['/v1.24', undefined, 'application/json', true, ''],
    ['/v1.24', 'application/x-ndjson', 'application/x-ndjson', true, ''],
    ['/v1.51', 'text/plain', 'application/json', true, ''],
    ['/v1.52', undefined, 'application/jsonl', false, ''],
    ['/v1.52', 'application/json-seq', 'application/json-seq', false, '\u001e'],
    ['', 'application/json', 'application/jsonl', false, ''],
  ];

  for (const [prefix, accept, type, hasStatus, separator] of rows) {
    using api = new Api(engine.socketPath, prefix);
    const { headers, raw } = await api.get('/events?since=1&until=' + String(Date.now() / 1000), {
      headers: accept === undefined ? {} : { Accept: accept },
    });
    const lines = raw.toString().split('\n').slice(0, -1);

    assert.equal(headers['content-type'], type, `${prefix} ${accept}`);
    assert.ok(lines.length > 0);
    for (const line of lines) {
      assert.equal(line.startsWith('\u001e') ? '\u001e' : '', separator);
      const event = JSON.parse(line.slice(separator.length)) as EventMessage;
      assert.equal('status' in event, hasStatus);
      assert.equal(event.Type, 'image');
    }
  }
});
