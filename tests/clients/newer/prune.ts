import type { Side } from '../both-engines.ts';
import type { NewerRow } from '../newer-rows.ts';

type Pruned = Record<string, unknown> & { SpaceReclaimed?: number };

const filters = (value: object): string => `?filters=${encodeURIComponent(JSON.stringify(value))}`;

async function prune({ api }: Side, kind: string, wanted: object = {}): Promise<Pruned> {
  const { status, body } = await api.post<Pruned>(`/${kind}/prune${filters(wanted)}`);
  return status === 200 ? body : { status };
}

async function create({ api }: Side, body: object, name: string): Promise<void> {
  await api.post(`/containers/create?name=${name}`, { Image: 'busybox', ...body });
}

async function namesOf({ api }: Side): Promise<string[]> {
  const { body } = await api.get<{ Names: string[] }[]>('/containers/json?all=1');
  return body.map(({ Names }) => Names[0]!).toSorted();
}

const wordsOf = (list: unknown): string[] => ((list as string[] | null) ?? []).toSorted();

export const pruneRows: readonly NewerRow[] = [
  {
    title: 'POST /containers/prune',
    work: async (side) => {
      await prune(side, 'containers');
      await create(side, { Cmd: ['sleep', '1000'], Labels: { stage: 'test' } }, 'running');
      await side.api.post('/containers/running/start');
      await create(side, { Labels: { stage: 'test', keep: '' } }, 'labelled');
      await create(side, { Cmd: ['sh', '-c', 'head -c 100000 /dev/zero >/file'] }, 'wrote');
      await side.api.post('/containers/wrote/start');
      await side.api.post('/containers/wrote/wait');
      const counts: unknown[] = [];
      for (const wanted of [
        { until: ['1h'] },
        { label: ['stage=prod'] },
        { 'label!': ['keep'] },
        { label: ['stage', 'keep'] },
        {},
        { until: ['24h', '25h'] },
        { colour: ['red'] },
      ]) {
        const { ContainersDeleted, SpaceReclaimed, status } = await prune(side, 'containers', wanted);
        counts.push({
          wanted,
          deleted: wordsOf(ContainersDeleted).length,
          SpaceReclaimed,
          refused: status !== undefined,
        });
        counts.push(await namesOf(side));
      }
      await side.api.delete('/containers/running?force=1');
      return counts;
    },
  },
  {
    title: 'POST /containers/prune of nothing',
    work: async (side) => await prune(side, 'containers', { until: ['1h'] }),
  },
  {
    title: 'POST /images/prune',
    work: async (side) => {
      const before = (await side.api.get<object[]>('/images/json?all=1')).body.length;
      const build = async (label: string): Promise<void> => {
        await create(side, { Cmd: ['sh', '-c', `echo ${label} >/file`] }, label);
        await side.api.post(`/containers/${label}/start`);
        await side.api.post(`/containers/${label}/wait`);
        await side.api.post(`/commit?container=${label}`, { Labels: { stage: label } });
        await side.api.delete(`/containers/${label}`);
      };
      await build('one');
      await build('two');
      await side.api.post('/commit?container=nope');
      const results: unknown[] = [];
      for (const wanted of [{ until: ['1h'] }, { label: ['stage=one'] }, { dangling: ['maybe'] }, {}, {}]) {
        const { ImagesDeleted, SpaceReclaimed, status } = await prune(side, 'images', wanted);
        const deleted = (ImagesDeleted as Record<string, string>[] | null)?.map((each) => Object.keys(each)[0]) ?? null;
        results.push({ deleted, SpaceReclaimed, status });
      }
      return { results, left: (await side.api.get<object[]>('/images/json?all=1')).body.length - before };
    },
  },
  {
    title: 'POST /images/prune with dangling=false leaves images of containers',
    work: async (side) => {
      const { Id } = (await side.api.get<{ Id: string }>('/images/busybox/json')).body;
      await create(side, {}, 'user');
      await side.api.post('/images/busybox/tag?repo=second');
      const { ImagesDeleted, SpaceReclaimed } = await prune(side, 'images', { dangling: ['false'], label: ['nope'] });
      const kept = { ImagesDeleted, SpaceReclaimed };
      await side.api.post('/images/busybox/tag?repo=third&tag=x');
      const { ImagesDeleted: later } = await prune(side, 'images', { dangling: ['false'], 'label!': ['a'] });
      await side.api.delete('/containers/user');
      await side.api.post(`/images/${Id}/tag?repo=busybox`);
      const names = (await side.api.get<{ RepoTags: string[] }[]>('/images/json')).body.flatMap(
        ({ RepoTags }) => RepoTags,
      );
      return { kept, later: (later as object[]).length, tags: names.filter((name) => !name.startsWith('rich')).length };
    },
  },
  {
    title: 'POST /volumes/prune',
    work: async (side) => {
      const { api } = side;
      await prune(side, 'volumes');
      for (const [Name, more] of [
        ['plain', {}],
        ['labelled', { Labels: { keep: 'yes' } }],
        ['used', {}],
        ['mounted', { DriverOpts: { type: 'tmpfs', device: 'tmpfs' } }],
      ] as const) {
        await api.post('/volumes/create', { Name, ...more });
      }
      await create(
        side,
        { Cmd: ['sh', '-c', 'head -c 70000 /dev/zero >/v/x'], HostConfig: { Binds: ['used:/v'] } },
        'user',
      );
      await api.post('/containers/user/start');
      await api.post('/containers/user/wait');
      const results: unknown[] = [];
      for (const wanted of [{ 'label!': ['keep=yes'] }, { label: ['keep'] }, { until: ['1h'] }, {}]) {
        results.push(await prune(side, 'volumes', wanted));
      }
      await api.delete('/containers/user');
      results.push(await prune(side, 'volumes'));
      await api.delete('/volumes/mounted');
      return results;
    },
  },
  {
    title: 'POST /networks/prune',
    work: async (side) => {
      const { api } = side;
      for (const [Name, more] of [
        ['plain', {}],
        ['labelled', { Labels: { keep: 'yes' } }],
        ['used', {}],
      ] as const) {
        await api.post('/networks/create', { Name, ...more });
      }
      await create(side, { Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'used' } }, 'member');
      await api.post('/containers/member/start');
      const results: unknown[] = [];
      for (const wanted of [{ 'label!': ['keep'] }, { until: ['1h'] }, { label: ['keep=yes'] }, {}]) {
        results.push(await prune(side, 'networks', wanted));
      }
      await api.delete('/containers/member?force=1');
      return [...results, await prune(side, 'networks')];
    },
  },
  {
    title: 'events of prunes',
    work: async (side) => {
      const since = Date.now() / 1000;
      for (const kind of ['containers', 'images', 'volumes', 'networks']) await prune(side, kind, { label: ['nope'] });
      const { raw } = await side.api.get(`/events?since=${since}&until=${Math.ceil(Date.now() / 1000)}`);
      const events = raw
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      return events.map(({ Type, Action, Actor, scope }) => ({ Type, Action, Actor, scope }));
    },
  },
];
