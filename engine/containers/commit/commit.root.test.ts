import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { sha256 } from '@gantry/engine/layers/chain-id.ts';
import type { Api } from '@gantry/testing/api.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Image = Record<string, unknown> & { Config: Record<string, unknown>; RootFS: { Layers: string[] } };
type History = { CreatedBy: string; Comment: string; Size: number; Tags: string[] | null }[];
type Event = { Action: string; Type: string; Actor: { ID: string; Attributes: Record<string, string> } };

const CHANGE =
  'echo new > /new; rm /etc/group; rm -r /home; mkdir /home; echo x > /home/x; chmod 700 /root; mkdir -p /a/b; ln /new /a/link; ln -s /x /a/sym';
const SETTINGS = { Env: ['A=1'], Labels: { a: 'b' }, ExposedPorts: { '80/tcp': {} }, WorkingDir: '/tmp', User: 'root' };

/** Requests to both engines. */
const requests: readonly (readonly [why: string, query: string, body?: unknown])[] = [
  ['nothing more', ''],
  ['a name, an author and a comment', 'repo=committed&tag=v1&author=me&comment=words%20here'],
  ['changes', `changes=${encodeURIComponent('CMD ["x"]\nENV B=$A')}&changes=${encodeURIComponent('LABEL c=d')}`],
  [
    'every change',
    `changes=${encodeURIComponent('ENTRYPOINT a b\nEXPOSE 90-91 $A\nVOLUME /v\nUSER u\nWORKDIR x\nONBUILD RUN y\nHEALTHCHECK --interval=5s CMD z')}`,
  ],
  ['settings', 'pause=0', { Cmd: ['other'], Env: ['A=2', 'C=3'], Labels: { e: 'f' } }],
  ['an entrypoint', '', { Entrypoint: ['/init'] }],
  ['an empty body', '', {}],
  ['an unknown change', 'changes=RUN%20x'],
  ['a change with an error', 'changes=ENV'],
  ['an expansion with an error', `changes=${encodeURIComponent('ENV A="x')}`],
];

suite('a commit', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  const containers = new Map<Api, string>();

  before(async () => {
    [engine, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start()]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
    for (const api of [engine, dockerd.api]) {
      const body = { Image: 'busybox', Cmd: ['sh', '-c', CHANGE], Hostname: 'h', HostConfig: { NetworkMode: 'none' } };
      const made = await api.post<{ Id: string }>('/containers/create', { ...body, ...SETTINGS });
      await api.post(`/containers/${made.body.Id}/start`);
      await api.post(`/containers/${made.body.Id}/wait`);
      containers.set(api, made.body.Id);
    }
  });
  after(async () => await Promise.all([engine[Symbol.asyncDispose](), dockerd[Symbol.asyncDispose]()]));

  async function commit(api: Api, query: string, body?: unknown, container = containers.get(api)!) {
    return await api.post<{ Id: string; message?: string }>(`/commit?container=${container}&${query}`, body);
  }

  async function seen(api: Api, query: string, body?: unknown): Promise<unknown> {
    const answer = await commit(api, query, body);
    if (answer.status !== 201) return { status: answer.status, message: answer.body.message };
    const image = (await api.get<Image>(`/images/${answer.body.Id}/json`)).body;
    const history = (await api.get<History>(`/images/${answer.body.Id}/history`)).body;
    const { Config, ContainerConfig, Author, Comment, Os, RepoTags } = image;
    return {
      Config,
      ContainerConfig: { ...(ContainerConfig as object), Image: '' },
      Author,
      Comment,
      Os,
      RepoTags,
      layers: image.RootFS.Layers.length,
      isOfContainer: image.Container === containers.get(api),
      history: history.map(({ CreatedBy, Comment: words, Tags }) => ({ CreatedBy, words, Tags })),
    };
  }

  for (const [why, query, body] of requests) {
    test(`with ${why} is as dockerd's`, async () => {
      const [ours, theirs] = [await seen(engine, query, body), await seen(dockerd.api, query, body)];

      assert.deepEqual(ours, theirs);
    });
  }

  test('has the changes, and nothing else', async () => {
    const lists = await Promise.all(
      [engine, dockerd.api].map(async (api) => {
        const { Id } = (await commit(api, '')).body;
        const image = (await api.get<Image>(`/images/${Id}/json`)).body;
        const saved = (await api.get(`/images/${Id}/get`)).raw;
        return layerOf(saved, image.RootFS.Layers.at(-1)!);
      }),
    );

    assert.deepEqual(lists[0], lists[1]);
  });

  test('without a change has no layer', async () => {
    const id = await engine.create(['true']);

    const { body } = await commit(engine, '', undefined, id);

    assert.equal((await engine.get<Image>(`/images/${body.Id}/json`)).body.RootFS.Layers.length, 1);
  });

  test('runs, and its files are there', async () => {
    const { body } = await commit(engine, `changes=${encodeURIComponent('CMD cat /new /home/x; ls /etc/group')}`);

    const id = await engine.run([], { Image: body.Id, Cmd: undefined });

    assert.equal(await engine.wait(id), 1);
    assert.equal((await engine.output(id)).stdout, 'new\nx\n');
  });

  test('of nothing is 404, and a bad name is 400', async () => {
    assert.equal((await engine.post('/commit?container=nope')).status, 404);
    assert.equal((await commit(engine, 'repo=UPPER')).status, 400);
  });

  test('of a running container pauses it meanwhile, and tells so', async () => {
    const id = await engine.run(['sleep', '1000']);

    const [one, two] = await Promise.all([
      commit(engine, 'comment=c', undefined, id),
      commit(engine, '', undefined, id),
    ]);

    assert.deepEqual([one.status, two.status], [201, 201]);
    assert.equal((await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Status, 'running');
    const told = (await eventsOf(engine, id))
      .map(({ Action }) => Action)
      .filter((action) => /pause|commit/.test(action));
    assert.equal(told.filter((action) => action === 'commit').length, 2);
    assert.equal(
      told.filter((action) => action === 'pause').length,
      told.filter((action) => action === 'unpause').length,
    );
    assert.ok(told.includes('pause'));
  });

  test('leaves a paused container paused', async () => {
    const id = await engine.run(['sleep', '1000']);
    await engine.post(`/containers/${id}/pause`);

    await commit(engine, '', undefined, id);

    assert.equal((await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Status, 'paused');
  });

  test('that dies with its daemon leaves the container running', async () => {
    const id = await engine.run(['sh', '-c', 'dd if=/dev/zero of=/big bs=1M count=300 2>&1; echo written; sleep 1000']);
    await untilOutput(engine, id, 'written');
    const paused = nextEvent(engine, id, 'pause');
    const lost = commit(engine, '', undefined, id).then(
      ({ status }) => status,
      () => 0,
    );
    await paused;
    await engine.kill();
    await lost;
    await engine.startAgain();

    await untilRunning(engine, id);

    const before = (await engine.get<{ Id: string }[]>('/images/json?all=1')).body.length;
    assert.equal((await commit(engine, '', undefined, id)).status, 201);
    assert.equal((await engine.get<{ Id: string }[]>('/images/json?all=1')).body.length, before + 1);
  });
});

/** The entries of a layer of a saved image, without times. */
function layerOf(saved: Buffer, diffId: string): string[] {
  const layer = [...tarList(saved).values()].find(({ content }) => sha256(content) === diffId);
  if (layer === undefined) throw new Error(`the archive has no layer ${diffId}`);
  return [...tarList(layer.content).values()]
    .map(({ path, type, mode, uid, gid, sizeBytes, linkPath }) =>
      JSON.stringify({ path, type, mode, uid, gid, sizeBytes, linkPath }),
    )
    .toSorted();
}

async function eventsOf(engine: TestEngine, id: string): Promise<Event[]> {
  const until = Math.floor(Date.now() / 1000) + 1;
  const { raw } = await engine.get(`/events?since=1&until=${until}`);
  const lines = raw
    .toString()
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Event).filter(({ Actor }) => Actor.ID === id);
}

async function nextEvent(engine: TestEngine, id: string, action: string): Promise<void> {
  const since = Math.floor(Date.now() / 1000) - 1;
  const filters = encodeURIComponent(JSON.stringify({ container: [id], event: [action] }));
  const stream = await engine.stream('GET', `/events?since=${since}&filters=${filters}`);
  for await (const _chunk of stream) return;
}

async function untilOutput(engine: TestEngine, id: string, text: string): Promise<void> {
  const stream = await engine.stream('GET', `/containers/${id}/logs?stdout=1&follow=1`);
  let seen = '';
  for await (const chunk of stream) {
    seen += (chunk as Buffer).toString();
    if (seen.includes(text)) return;
  }
}

/** The daemon lets clients in before it has found every shim. */
async function untilRunning(engine: TestEngine, id: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { State } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    if (State.Status === 'running') return;
    if (Date.now() > deadline) throw new Error(`it is ${State.Status}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 50));
  }
}
