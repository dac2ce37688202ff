import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import { FIELD_VERSIONS } from '@gantry/engine/http/versions/field-versions.ts';

import { BothEngines, type Side } from '../both-engines.ts';
import { CHOSEN, HEADER_ROWS, HEADER_VALUES, QUERY_ROWS, QUERY_VALUES } from './query-rows.ts';

type Asked = Readonly<{ name: string; path: string; headers: Record<string, string>; body?: unknown }>;
type Outcome = Readonly<{ status: number; isLate: boolean }>;

/** These answer 200 and tell a failure in the stream behind it. */
const LATE = /^\/(build|images\/(create|load)|images\/.*\/push)\?/;
const WEBSOCKET = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', Origin: 'http://localhost' },
  ...{ 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': '13' },
};

suite('empty values of query keys and headers have the status that dockerd gives them', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
    await engines.both(prepare);
  });
  after(async () => await engines[Symbol.asyncDispose]());

  test('all query keys of the API have a row', async () => {
    type Parameter = { name: string; in: string };
    type Paths = Record<string, Record<string, { parameters?: Parameter[] }>>;
    const { paths } = (await engines.ours.api.get<{ paths: Paths }>('/openapi.json')).body;
    const keys = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { parameters = [] }]) =>
        parameters
          .filter((each) => each.in === 'query')
          .map(({ name }) => `${method.toUpperCase()} ${withoutNames(path)} ${name}`),
      ),
    );
    const rows = QUERY_ROWS.flatMap(([endpoint, , , names]) =>
      names.split(' ').map((name) => `${withoutNames(endpoint)} ${name}`),
    );

    // Later keys count at every version, and are not in the description of this one.
    const later = Object.entries(FIELD_VERSIONS).flatMap(([endpoint, { query = {} }]) =>
      Object.keys(query).map((name) => `${withoutNames(endpoint)} ${name}`),
    );

    assert.deepEqual([...new Set(rows)].filter((row) => !later.includes(row)).toSorted(), keys.toSorted());
  });

  for (const row of QUERY_ROWS) {
    test(`${row[0]} with ${row[3]}`, async () => {
      const [endpoint, path, query, names, body] = row;
      await compare(
        endpoint,
        combined(names, QUERY_VALUES, (name, value) => {
          const search = new URLSearchParams(query);
          search.delete(name);
          if (value !== undefined) search.set(name, value);
          return { name: `${name}=${value}`, path: `${path}?${search.toString()}`, headers: {}, body };
        }),
      );
    });
  }

  for (const [index, row] of HEADER_ROWS.entries()) {
    test(`${row[0]} with the headers ${row[3]} (${index})`, async () => {
      const [endpoint, path, query, names, body] = row;
      await compare(
        endpoint,
        combined(names, HEADER_VALUES, (name, value) => {
          const headers: Record<string, string> = value === undefined ? {} : { [name]: value };
          return { name: `${name}: ${value}`, path: `${path}?${query}`, headers, body };
        }),
      );
    });
  }

  async function compare(endpoint: string, cases: readonly Asked[]): Promise<void> {
    const [method = ''] = endpoint.split(' ');
    const { ours, theirs } = await engines.both(async (side) => {
      const outcomes: Outcome[] = [];
      for (const asked of cases) outcomes.push(await outcome(side, method, asked));
      return outcomes;
    });
    const found = cases.flatMap(({ name }, index) => {
      const isChosen = CHOSEN[`${endpoint} ${name}`] !== undefined;
      const each = { name, ours: ours[index]!, theirs: theirs[index]! };
      return agree(each.ours, each.theirs) === isChosen ? [each] : [];
    });
    assert.deepEqual(found, []);
  }
});

function combined<T>(names: string, values: readonly T[], asked: (name: string, value: T) => Asked): Asked[] {
  return names.split(' ').flatMap((name) => values.map((value) => asked(name, value)));
}

function withoutNames(path: string): string {
  return path.replaceAll(/\{\w+\}/g, '{}');
}

/** In places dockerd answers 500 to a bad value, and 503 where the specification has 406. */
function agree(ours: Outcome, theirs: Outcome): boolean {
  const isMeant =
    (theirs.status === 500 && ours.status >= 400 && ours.status < 500) ||
    (theirs.status === 503 && ours.status === 406);
  return (ours.status === theirs.status || isMeant) && ours.isLate === theirs.isLate;
}

async function prepare({ api }: Side): Promise<void> {
  for (const [name, Cmd, Tty] of [
    ['run', ['sleep', '100000'], true],
    ['watched', ['sleep', '100000'], true],
    ['done', ['true'], false],
  ] as const) {
    await api.call('POST', `/containers/create?name=${name}`, { body: { Image: 'busybox', Cmd, Tty } });
    await api.call('POST', `/containers/${name}/start`);
  }
  await api.call('POST', '/containers/done/wait');
  await api.call('POST', '/swarm/init', { body: { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' } });
  const TaskTemplate = { ContainerSpec: { Image: 'busybox' } };
  const body = { Name: 'served', TaskTemplate, Mode: { Replicated: { Replicas: 0 } } };
  await api.call('POST', '/services/create', { body });
}

async function outcome(side: Side, method: string, { path, headers, body }: Asked): Promise<Outcome> {
  const isTar = Buffer.isBuffer(body);
  const bytes = body === undefined || isTar ? body : JSON.stringify(body);
  const asking = request({
    socketPath: side.socketPath,
    method,
    path: `/v1.24${await withFresh(side, path)}`,
    headers: {
      ...(bytes !== undefined && {
        'Content-Length': Buffer.byteLength(bytes),
        'Content-Type': isTar ? 'application/x-tar' : 'application/json',
      }),
      ...(path.includes('/ws?') && WEBSOCKET),
      ...headers,
    },
  });
  asking.end(bytes);
  const upgraded = once(asking, 'upgrade') as Promise<[IncomingMessage, Duplex]>;
  const answered = once(asking, 'response') as Promise<[IncomingMessage]>;
  const [answer, socket] = await Promise.race([upgraded, answered]);
  const status = answer.statusCode!;
  if (socket === undefined && LATE.test(path)) {
    return { status, isLate: status === 200 && (await text(answer)).includes('"errorDetail"') };
  }
  (socket ?? answer).destroy();
  return { status, isLate: false };
}

async function withFresh({ api }: Side, path: string): Promise<string> {
  type Made = { Id: string };
  if (path.includes('{fresh}')) {
    const { Id } = await api.call<Made>('POST', '/containers/create', { body: { Image: 'busybox' } });
    return path.replace('{fresh}', Id);
  }
  if (path.includes('{running}')) {
    const body = { Image: 'busybox', Cmd: ['sleep', '100000'], HostConfig: { NetworkMode: 'none' } };
    const { Id } = await api.call<Made>('POST', '/containers/create', { body });
    await api.call('POST', `/containers/${Id}/start`);
    return path.replace('{running}', Id);
  }
  if (path.includes('{tagged}')) {
    await api.call('POST', '/images/busybox/tag?repo=tagged');
    return path.replace('{tagged}', 'tagged');
  }
  if (path.includes('{exec}')) {
    const { Id } = await api.call<Made>('POST', '/containers/watched/exec', { body: { Cmd: ['true'], Tty: true } });
    return path.replace('{exec}', Id);
  }
  return path;
}
