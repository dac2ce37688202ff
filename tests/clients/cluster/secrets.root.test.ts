import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';

import { BothEngines, docker, type Side } from '../both-engines.ts';

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

const STACK = `version: "3.8"
services:
  app:
    image: busybox
    command: sleep 1000
    deploy: { replicas: 0 }
    secrets: [s1, { source: s2, target: other, mode: 0400 }]
    configs: [{ source: c1, target: /conf }]
secrets:
  s1: { file: ./value }
  s2: { file: ./template, template_driver: golang }
configs:
  c1: { file: ./template, template_driver: golang }
`;
const CONTAINER = '.Spec.TaskTemplate.ContainerSpec';
/** One line each: the command line sends them in no order. */
const REFERENCES = ['Secret', 'Config']
  .map((word) => `{{range ${CONTAINER}.${word}s}}{{.${word}Name}} {{json .File}}{{println}}{{end}}`)
  .join('');

/** Lines of docker's command line; `DIR` is a folder with the files `value`, `template` and `stack.yml`. */
const LINES: readonly (readonly string[])[] = [
  ['secret', 'create', '--label', 'a=b', 'one', 'DIR/value'],
  ['secret', 'create', 'one', 'DIR/value'],
  ['secret', 'create', '--template-driver', 'golang', 'two', 'DIR/template'],
  ['secret', 'ls', '--format', '{{.Name}} {{.Driver}} {{.Labels}}', '--filter', 'label=a'],
  ['secret', 'ls', '-q', '--filter', 'name=tw'],
  ['secret', 'inspect', '--format', '{{json .Spec}}', 'one', 'two'],
  ['secret', 'inspect', 'nosuch'],
  ['config', 'create', 'conf', 'DIR/template'],
  ['config', 'ls', '--format', '{{.Name}} {{.Labels}}', '--filter', 'name=conf'],
  ['config', 'inspect', '--format', '{{json .Spec}}', 'conf'],
  [
    ...['service', 'create', '--detach', '--name', 'web', '--replicas', '0', '--secret', 'one'],
    ...['--secret', 'source=two,target=/x,uid=1,gid=2,mode=0400', '--config', 'conf'],
    ...['--config', 'source=conf,target=/etc/c,mode=0440', 'busybox', 'sleep', '1000'],
  ],
  ['service', 'create', '--detach', '--name', 'bad', '--secret', 'nosuch', 'busybox'],
  ['service', 'create', '--detach', '--name', 'bad', '--config', 'nosuch', 'busybox'],
  ['service', 'inspect', '--format', REFERENCES, 'web'],
  ['secret', 'rm', 'one'],
  ['config', 'rm', 'conf'],
  [
    ...['service', 'update', '--detach', '--secret-rm', 'two', '--secret-add', 'source=two,target=y'],
    ...['--config-rm', 'conf', 'web'],
  ],
  ['service', 'inspect', '--format', REFERENCES, 'web'],
  ['service', 'rm', 'web'],
  ['secret', 'rm', 'one', 'two'],
  ['config', 'rm', 'conf'],
  ['stack', 'deploy', '--detach=true', '-c', 'DIR/stack.yml', 'st'],
  ['service', 'inspect', '--format', REFERENCES, 'st_app'],
  ['stack', 'deploy', '--detach=true', '-c', 'DIR/stack.yml', 'st'],
  ['secret', 'ls', '--format', '{{.Name}} {{.Labels}}', '--filter', 'name=st_'],
  ['service', 'rm', 'st_app'],
];

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

  test('null as a reference is refused, where dockerd panics', async () => {
    for (const field of ['Secrets', 'Configs']) {
      const body = { TaskTemplate: { ContainerSpec: { Image: 'busybox', [field]: [null] } } };
      const { status, raw } = await engines.ours.api.post('/services/create', body);
      assert.equal(status, 400);
      assert.match(raw.toString(), field === 'Secrets' ? /malformed secret reference/ : /invalid Config: either File/);
    }
  });

  test('docker’s command line says the same of both', async () => {
    const folders = { 'DIR/value': 'the value', 'DIR/template': '{{.Service.Name}}', 'DIR/stack.yml': STACK };
    const { ours, theirs } = await engines.both(async (side) => {
      const placed = (word: string): string => word.replace('DIR', side.directory);
      for (const [path, text] of Object.entries(folders)) await writeFile(placed(path), text);
      const said: unknown[] = [];
      for (const line of LINES) {
        const { code, stdout, stderr } = await docker(side, line.map(placed));
        said.push(normalized({ code, stdout: stdout.split('\n'), stderr: stderr.replaceAll(side.directory, 'DIR') }));
      }
      return said;
    });

    for (const [index, line] of LINES.entries()) assert.deepEqual(ours[index], theirs[index], line.join(' '));
  });
});
