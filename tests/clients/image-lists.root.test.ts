import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Summary = {
  Id: string;
  ParentId: string;
  RepoTags: string[] | null;
  RepoDigests: string[] | null;
  Size: number;
  Labels: object | null;
};

/** Images of both: loaded ones, one without a name, children by commits, containers. */
const layer = (name: string): Buffer => new TarWriter().add({ name, content: name.repeat(100) }).end();
const archives = async (): Promise<Buffer[]> => [
  await busyboxArchive(),
  imageArchive([layer('a')], ['r.io:5000/team/app:1', 'r.io:5000/team/app:2', 'app:1'], {
    Labels: { kind: 'app', v: '1' },
  }),
  imageArchive([layer('a'), layer('b')], ['lib:1'], { Labels: { kind: 'lib' } }),
  imageArchive([layer('c')], ['lost:1']),
];

const lists = [
  {},
  { all: '1' },
  { digests: '1' },
  { filter: 'app' },
  { filter: 'app:2' },
  { filters: { dangling: ['true'] } },
  { filters: { dangling: ['false'] } },
  { filters: { dangling: ['perhaps'] } },
  { filters: { label: ['kind'] } },
  { filters: { label: ['kind=app'] } },
  { filters: { label: ['kind=app', 'v=1'] } },
  { filters: { label: ['kind=app', 'v=2'] } },
  { filters: { reference: ['app'] } },
  { filters: { reference: ['app:*'] } },
  { filters: { reference: ['*/*/app:2'] } },
  { filters: { reference: ['r.io:5000/team/*'] } },
  { filters: { reference: ['lib', 'app'] } },
  { filters: { reference: ['none*'] } },
  { filters: { before: ['child:1'] } },
  { filters: { since: ['busybox'] } },
  { filters: { since: ['child:1'] }, all: '1' },
  { filters: { before: ['none'] } },
  { filters: { nonsense: ['x'] } },
  { filters: { label: ['kind'], reference: ['lib'] } },
] as const;

/** In this order: each changes what the next one finds. */
const removals = [
  'none',
  'UPPER',
  'busybox',
  'child:1',
  'app:1',
  'r.io:5000/team/app',
  'r.io:5000/team/app:1',
  'grandchild:1?noprune=1',
  'child:1?force=1',
  'lib:1',
  'busybox?force=1',
] as const;

suite('lists and removals of images beside dockerd', { concurrency: false }, () => {
  let engines: Api[];
  let ours: TestEngine;
  let dockerd: Dockerd;

  before(async () => {
    ours = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    dockerd = await Dockerd.start(['--bridge=none', '--iptables=false']);
    engines = [ours, dockerd.api];
    for (const engine of engines) {
      for (const archive of await archives())
        assert.equal((await engine.post('/images/load?quiet=1', archive)).status, 200);
      await engine.post('/images/app:1/tag?repo=lost&tag=1'); // the one that had the name has none now
      for (const [from, name] of [
        ['busybox', 'child'],
        ['child:1', 'grandchild'],
      ]) {
        const { body } = await engine.post<{ Id: string }>('/containers/create', { Image: from, Cmd: ['true'] });
        const committed = await engine.post(`/commit?container=${body.Id}&repo=${name}&tag=1`, {});
        assert.equal(committed.status, 201, committed.raw.toString());
        if (name === 'grandchild') await engine.delete(`/containers/${body.Id}`);
      }
    }
  });
  after(async () => {
    await dockerd[Symbol.asyncDispose]();
    await ours[Symbol.asyncDispose]();
  });

  /** Names in the place of ids, which commits make anew. */
  async function namesOf(engine: Api): Promise<Map<string, string>> {
    const { body } = await engine.get<Summary[]>('/images/json?all=1');
    return new Map(body.map(({ Id, RepoTags }) => [Id, RepoTags?.toSorted()[0] ?? '']));
  }
  const shown = (images: Summary[], names: Map<string, string>): object[] =>
    images
      .map(({ Id, ParentId, RepoTags, RepoDigests, Size, Labels }) => ({
        name: names.get(Id),
        parent: names.get(ParentId) ?? '',
        RepoTags: RepoTags?.toSorted(),
        RepoDigests,
        Size,
        Labels,
      }))
      .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

  for (const list of lists) {
    test(`the list of ${JSON.stringify(list)} is dockerd's`, async () => {
      const { filters, ...rest } = list as { filters?: object };
      const query = new URLSearchParams({ ...rest, ...(filters && { filters: JSON.stringify(filters) }) }).toString();
      const [mine, other] = await Promise.all(
        engines.map(async (engine) => {
          const names = await namesOf(engine);
          const { status, body } = await engine.get<Summary[]>(`/images/json?${query}`);
          return { status, body: Array.isArray(body) ? shown(body, names) : body };
        }),
      );

      assert.deepEqual(mine, other);
    });
  }

  for (const ref of removals) {
    test(`the removal of ${ref} is dockerd's`, async () => {
      const [mine, other] = await Promise.all(
        engines.map(async (engine) => {
          const names = await namesOf(engine);
          const { status, body } = await engine.delete<object>(`/images/${ref}`);
          let text = JSON.stringify(body);
          for (const [id, name] of names) text = text.replaceAll(id, name).replaceAll(id.slice(7, 19), name);
          const left = await engine.get<Summary[]>('/images/json?all=1');
          // Ids of containers, and of layers that commits made.
          return {
            status,
            text: text.replaceAll(/\b(?:sha256:)?[0-9a-f]{12,64}\b/g, 'ID'),
            left: shown(left.body, names),
          };
        }),
      );

      assert.deepEqual(mine, other);
    });
  }
});
