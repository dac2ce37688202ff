import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Engine = Readonly<{ api: Api; restart: () => Promise<void> }>;
type Spec = { EncryptionConfig: { AutoLockManagers: boolean } };
type Swarm = { LocalNodeState: string; NodeAddr: string; Error: string; ControlAvailable: boolean };

const INIT = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
const LOCKED = { Spec: { EncryptionConfig: { AutoLockManagers: true } } };
const GET = ['swarm', 'swarm/unlockkey', 'nodes', 'nodes/x', 'services', 'tasks', 'secrets', 'configs', 'networks/x'];
const POST: readonly (readonly [path: string, body: object])[] = [
  ['swarm/init', INIT],
  ['swarm/init', { ...INIT, ForceNewCluster: true }],
  ['swarm/join', { ...INIT, RemoteAddrs: ['127.0.0.1:2377'], JoinToken: 'x' }],
  ['swarm/update?version=1', {}],
  ['swarm/leave', {}],
  ['services/create', { Name: 'x', TaskTemplate: { ContainerSpec: { Image: 'busybox' } } }],
  ['secrets/create', { Name: 'x', Data: 'eA==' }],
];
/** Texts that are no unlock key, or another one; `{key}` is the right one. */
const WRONG = [
  '',
  'x',
  ' {key}',
  '{key}=',
  '{key}!',
  'SWMKEY-1-',
  'SWMKEY-1-AAAA',
  'SWMKEY-1-9FwBm58re4YvwFTTu9JbReluOkJXHMvZizs6NIJygng',
  'SWMKEY-2-9FwBm58re4YvwFTTu9JbReluOkJXHMvZizs6NIJygng',
];

/** Says the same on both engines, which is compared. */
type Answer = readonly [request: string, status: number, message: unknown];

suite('locked managers, beside dockerd', { concurrency: false }, () => {
  const parts = new AsyncDisposableStack();
  let engines: readonly Engine[];
  before(async () => {
    const [engine, dockerd] = await Promise.all([
      TestEngine.start({ version: '1.41', image: false, flags: ['--max-api-version=1.41'] }),
      Dockerd.start(),
    ]);
    parts.use(engine);
    parts.use(dockerd);
    const restart = async (): Promise<void> => {
      await engine.kill('SIGTERM');
      await engine.startAgain();
    };
    const theirs = parts.use(new Api(dockerd.socketPath, '/v1.41'));
    engines = [
      { api: engine, restart },
      { api: theirs, restart: async () => await dockerd.restart() },
    ];
  });
  after(async () => await parts.disposeAsync());

  async function same(work: (engine: Engine) => Promise<readonly Answer[]>): Promise<void> {
    const [ours, theirs] = await Promise.all(engines.map(async (engine) => await work(engine)));
    assert.deepEqual(ours, theirs);
  }

  const key = async ({ api }: Engine): Promise<string> =>
    (await api.get<{ UnlockKey: string }>('/swarm/unlockkey')).body.UnlockKey;
  const form = (text: string): string => text.replace(/(?<=SWMKEY-1-)[A-Za-z0-9+/]{43}$/, '<key>');
  const unlock = async ({ api }: Engine, text: string): Promise<Answer> =>
    answerOf('unlock', await api.post('/swarm/unlock', { UnlockKey: text }));
  const state = async ({ api }: Engine): Promise<Answer> => {
    const { LocalNodeState, NodeAddr, Error, ControlAvailable } = (await api.get<{ Swarm: Swarm }>('/info')).body.Swarm;
    return ['info', 200, { LocalNodeState, NodeAddr, Error, ControlAvailable }];
  };
  async function update({ api }: Engine, query: string, change: (spec: Spec) => void): Promise<Answer> {
    const { body } = await api.get<{ Version: { Index: number }; Spec: Spec }>('/swarm');
    change(body.Spec);
    return answerOf(query, await api.post(`/swarm/update?version=${body.Version.Index}${query}`, body.Spec));
  }

  test('outside of a cluster', async () => {
    await same(async (engine) => [
      answerOf('key', await engine.api.get('/swarm/unlockkey')),
      await unlock(engine, 'x'),
    ]);
  });

  test('the key of a manager with auto-lock, its rotation, auto-lock off and on', async () => {
    await same(async (engine) => {
      const { api } = engine;
      const answers = [answerOf('init', await api.post('/swarm/init', { ...INIT, ...LOCKED }))].map(
        ([what, status]) => [what, status, ''],
      ) as Answer[];
      const first = await key(engine);
      answers.push(['key', 200, form(first)], await unlock(engine, first));
      answers.push(await update(engine, '&rotateManagerUnlockKey=maybe', () => undefined));
      answers.push(await update(engine, '&rotateManagerUnlockKey=1', () => undefined));
      const second = await key(engine);
      answers.push(['rotated', 200, [form(second), second === first]]);
      answers.push(await update(engine, '', (spec) => (spec.EncryptionConfig.AutoLockManagers = false)));
      answers.push(['off', 200, await key(engine)]);
      answers.push(await update(engine, '&rotateManagerUnlockKey=1', () => undefined), ['off', 200, await key(engine)]);
      answers.push(await update(engine, '', (spec) => (spec.EncryptionConfig.AutoLockManagers = true)));
      const third = await key(engine);
      answers.push(['on', 200, [form(third), third === second]]);
      const { body } = await api.get<{ Spec: Spec }>('/swarm');
      return [...answers, ['spec', 200, body.Spec.EncryptionConfig]];
    });
  });

  test('a locked manager, wrong keys, and the right one', async () => {
    await same(async (engine) => {
      const { api } = engine;
      const right = await key(engine);
      await engine.restart();
      const answers = [await state(engine)];
      for (const path of GET) answers.push(answerOf(path, await api.get(`/${path}`)));
      for (const [path, body] of POST) answers.push(answerOf(path, await api.post(`/${path}`, body)));
      for (const wrong of WRONG) answers.push(await unlock(engine, wrong.replace('{key}', right)));
      answers.push(answerOf('null', await api.post('/swarm/unlock', { UnlockKey: null })), await state(engine));
      answers.push(await unlock(engine, right), await unlock(engine, right), await state(engine));
      return [...answers, ['key', 200, (await key(engine)) === right]];
    });
  });

  test('a locked manager leaves by force', async () => {
    await same(async (engine) => {
      await engine.restart();
      const left = answerOf('leave', await engine.api.post('/swarm/leave?force=1'));
      const again = await engine.api.post('/swarm/init', INIT);
      return [left, ['init', again.status, ''], ['key', 200, await key(engine)]];
    });
  });
});

function answerOf(request: string, { status, raw }: { status: number; raw: Buffer }): Answer {
  const text = raw.toString().trim();
  return [request, status, text.startsWith('{') ? (JSON.parse(text) as { message?: string }).message : text];
}
