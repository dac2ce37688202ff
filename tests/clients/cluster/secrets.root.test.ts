import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, type Side } from '../both-engines.ts';

type Method = 'GET' | 'POST' | 'DELETE';
type Row = readonly [method: Method, path: string, body?: unknown];
type Answer = Readonly<{ status: number; body: unknown }>;

const base64 = (content: string | Buffer): string => Buffer.from(content).toString('base64');
const filters = (wanted: object): string => `filters=${encodeURIComponent(JSON.stringify(wanted))}`;
const VALUE = base64('value');

/** `{id}` is the id of the object `one`, `{version}` its version, and `{old}` a version before it. */
function rowsOf(kind: 'secret' | 'config'): Row[] {
  const path = `/${kind}s`;
  const limit = kind === 'secret' ? 500 * 1024 : 1000 * 1024;
  const create = (body: unknown): Row => ['POST', `${path}/create`, body];
  const update = (query: string, body: unknown): Row => ['POST', `${path}/{id}/update?${query}`, body];
  const word = kind === 'secret' ? 'Secret' : 'Config';
  const reference = (changes: object = {}, file: object | null = {}): object => ({
    ...{ [`${word}ID`]: '{id}', [`${word}Name`]: 'one' },
    ...(file !== null && { File: { Name: 'one', UID: '0', GID: '0', Mode: 0o444, ...file } }),
    ...changes,
  });
  const service = (references: unknown, Name = 'web'): Row => [
    'POST',
    '/services/create',
    {
      ...{ Name, Mode: { Replicated: { Replicas: 0 } } },
      TaskTemplate: { ContainerSpec: { Image: 'busybox', [`${word}s`]: references } },
    },
  ];
  return [
    ['GET', path],
    create({ Name: 'one', Labels: { a: 'b' }, Data: VALUE }),
    create({ Name: 'one', Data: VALUE }),
    create({ Name: '', Data: VALUE }),
    create({}),
    create({ Name: 'bad name', Data: VALUE }),
    create({ Name: 'a'.repeat(64), Data: VALUE }),
    create({ Name: 'a'.repeat(65), Data: VALUE }),
    create({ Name: '-x', Data: VALUE }),
    create({ Name: 'x.', Data: VALUE }),
    create({ Name: 'nothing' }),
    create({ Name: 'nothing', Data: null }),
    create({ Name: 'text', Data: '###' }),
    create({ Name: 'lines', Data: 'dmF\nsdWU=\r\n' }),
    create({ Name: 'largest', Data: base64(Buffer.alloc(limit - 1, 1)) }),
    create({ Name: 'larger', Data: base64(Buffer.alloc(limit, 1)) }),
    create({ Name: 'template', Data: VALUE, Templating: { Name: 'golang' } }),
    create({ Name: 'odd', Data: VALUE, Templating: { Name: 'other', Options: { a: 'b' } } }),
    create({ Name: 'stored', Data: VALUE, Driver: {} }),
    ['GET', `${path}/{id}`],
    ['GET', `${path}/one`],
    ['GET', `${path}/nosuch`],
    ['GET', `${path}/template`],
    ['GET', `${path}/odd`],
    ...[
      ...[{ name: ['on'] }, { name: ['ne'] }, { names: ['one'] }, { names: ['on'] }, { names: ['one', 'odd'] }],
      ...[{ label: ['a'] }, { label: ['a=c'] }, { id: ['one'] }, { colour: ['red'] }],
      { name: ['one'], label: ['a=b'] },
    ].map((wanted): Row => ['GET', `${path}?${filters(wanted)}`]),
    update('', { Name: 'one', Labels: { c: 'd' } }),
    update('version=x', { Name: 'one', Labels: { c: 'd' } }),
    update('version={old}', { Name: 'one', Labels: { c: 'd' } }),
    update('version={version}', { Name: 'two', Labels: { c: 'd' } }),
    update('version={version}', { Name: 'one', Labels: { c: 'd' }, Data: base64('other') }),
    update('version={version}', { Labels: { c: 'd' } }),
    update('version={version}', { Name: 'one', Labels: { c: 'd' }, Data: VALUE }),
    ['GET', `${path}/{id}`],
    ['POST', `${path}/one/update?version={version}`, { Name: 'one', Labels: {} }],
    ['POST', `${path}/nosuch/update?version=1`, { Name: 'one' }],
    ['GET', `${path}/one`],
    ['DELETE', `${path}/nosuch`],
    service([reference({ [`${word}ID`]: 'nosuch' })]),
    service([reference({ [`${word}ID`]: '' })]),
    service([reference({ [`${word}Name`]: 'wrong' })]),
    service([reference({ [`${word}Name`]: '' })]),
    service([reference({}, null)]),
    service([reference({}, { Name: '' })]),
    service([reference(), reference()]),
    service([{}]),
    service([reference(), reference({}, { Name: '/one', UID: '7', GID: '8', Mode: 0o400 })]),
    ['GET', '/services/web'],
    ['DELETE', `${path}/one`],
    ['DELETE', '/services/web'],
    ['DELETE', `${path}/{id}`],
    ['GET', `${path}/{id}`],
  ];
}

async function answersOf({ api }: Side, rows: readonly Row[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  const known: Record<string, string> = { id: 'none', version: '1', old: '1' };
  for (const [method, path, body] of rows) {
    const placed = (text: string): string =>
      text.replaceAll(/\{(id|version|old)\}/g, (_all, name: string) => known[name]!);
    const sent = body === undefined ? undefined : JSON.parse(placed(JSON.stringify(body)));
    const answer = await api.request<Record<string, unknown>>(method, placed(path), { body: sent });
    answers.push({ status: answer.status, body: normalized(answer.body) });
    if (/\/(secret|config)s\/(create|one)/.test(path) && answer.status < 300) {
      const one = await api.get<{ ID: string; Version: { Index: number } }>(`${path.slice(0, 8)}/one`);
      const index = one.body.Version.Index;
      Object.assign(known, { id: one.body.ID, version: String(index), old: String(index - 1) });
    }
  }
  return answers;
}

/** Without ids, times and versions, and lists in the order of names. */
function normalized(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map(normalized).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value === 'string') return value.replaceAll(/[0-9a-z]{25}/g, 'ID');
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(
    ([key]) => !['CreatedAt', 'UpdatedAt', 'Version', 'Isolation', 'ForceUpdate', 'Runtime'].includes(key),
  );
  return Object.fromEntries(entries.map(([key, one]) => [key, normalized(one)]));
}

suite('secrets and configs, beside dockerd', () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
    await engines.both(async ({ api }) => {
      await api.post('/swarm/init', { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' });
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const kind of ['secret', 'config'] as const) {
    const rows = rowsOf(kind);
    test(`/${kind}s answers as dockerd does`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await answersOf(side, rows));

      for (const [index, [method, path, body]] of rows.entries()) {
        const what = `${method} ${path} ${JSON.stringify(body)?.slice(0, 200) ?? ''}`;
        assert.deepEqual(ours[index], theirs[index], what);
      }
    });
  }
});
