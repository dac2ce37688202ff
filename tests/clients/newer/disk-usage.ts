import { docker, type Side } from '../both-engines.ts';
import type { NewerRow } from '../newer-rows.ts';

type Usage = {
  LayersSize: number;
  Images: { RepoTags: string[]; Size: number; SharedSize: number; Containers: number }[];
  Containers: { Names: string[]; SizeRw?: number; SizeRootFs: number; State: string }[];
  Volumes: { Name: string; UsageData: object }[];
};

async function usageOf({ api }: Side): Promise<object> {
  const { body } = await api.get<Usage>('/system/df');
  return {
    fields: ['LayersSize', 'Images', 'Containers', 'Volumes', 'BuildCache', 'BuilderSize'].map((key) => key in body),
    layers: body.LayersSize,
    images: body.Images.map(({ RepoTags, Size, SharedSize, Containers }) => ({
      RepoTags,
      Size,
      SharedSize,
      Containers,
    })).toSorted((a, b) => (a.RepoTags[0]! < b.RepoTags[0]! ? -1 : 1)),
    containers: body.Containers.map(({ Names, SizeRw, SizeRootFs, State }) => ({
      Names,
      SizeRw: SizeRw ?? 0,
      SizeRootFs,
      State,
    })),
    volumes: body.Volumes.map(({ Name, UsageData }) => ({ Name, UsageData })).toSorted((a, b) =>
      a.Name < b.Name ? -1 : 1,
    ),
  };
}

const write = (bytes: number, path: string): string[] => [
  'sh',
  '-c',
  `head -c ${bytes} /dev/zero >${path}; sleep 1000`,
];

async function run({ api }: Side, name: string, body: object): Promise<void> {
  await api.post(`/containers/create?name=${name}`, { Image: 'busybox', ...body });
  await api.post(`/containers/${name}/start`);
}

/** Runs a command in the container to its end. */
async function execute({ api }: Side, name: string, command: readonly string[]): Promise<void> {
  const { body } = await api.post<{ Id: string }>(`/containers/${name}/exec`, { Cmd: command, AttachStdout: true });
  await api.post(`/exec/${body.Id}/start`, {});
}

export const diskUsageRows: readonly NewerRow[] = [
  {
    title: 'GET /system/df follows containers and volumes',
    work: async (side) => {
      const { api } = side;
      const looks: object[] = [await usageOf(side)];
      await run(side, 'writer', { Cmd: ['sleep', '1000'], HostConfig: { Binds: ['data:/v'] } });
      await execute(side, 'writer', write(50_000, '/file; exit'));
      looks.push(await usageOf(side));
      await execute(side, 'writer', write(70_000, '/v/file; exit'));
      looks.push(await usageOf(side));
      await api.post('/containers/writer/kill');
      looks.push(await usageOf(side));
      await api.post('/containers/create?name=idle', { Image: 'busybox' });
      looks.push(await usageOf(side), await usageOf(side));
      await api.delete('/containers/writer');
      looks.push(await usageOf(side));
      await api.post('/commit?container=idle&repo=above');
      looks.push(await usageOf(side));
      await api.delete('/images/above');
      await api.delete('/containers/idle');
      await api.delete('/volumes/data');
      return looks;
    },
  },
  {
    title: 'docker system df and prune',
    work: async (side) => {
      await run(side, 'ended', { Cmd: ['sh', '-c', 'head -c 100000 /dev/zero >/file'] });
      await side.api.post('/containers/ended/wait');
      const lines = [await docker(side, ['system', 'df']), await docker(side, ['system', 'df', '--verbose'])];
      const pruned = await docker(side, ['system', 'prune', '--force', '--volumes']);
      return {
        lines: lines.map(({ code }) => code),
        table: lines[0]!.stdout,
        pruned: pruned.stdout.replaceAll(/[0-9a-f]{64}/g, '<id>'),
      };
    },
  },
  {
    title: 'POST /build/prune of nothing',
    work: async ({ api }) => (await api.post('/build/prune?all=1')).body,
  },
];
