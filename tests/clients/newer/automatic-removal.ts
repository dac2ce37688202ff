import { docker, type Side } from '../both-engines.ts';
import type { NewerRow } from '../newer-rows.ts';

type Body = { message?: string; StatusCode?: number; Error?: { Message: string } | null };

async function create({ api }: Side, body: object, name?: string): Promise<string> {
  const query = name === undefined ? '' : `?name=${name}`;
  const { body: answer } = await api.post<{ Id: string }>(`/containers/create${query}`, { Image: 'busybox', ...body });
  return answer.Id;
}

async function waited({ api }: Side, id: string, condition: string): Promise<unknown> {
  const { status, body } = await api.post<Body>(`/containers/${id}/wait?condition=${condition}`);
  return { status, code: body.StatusCode, hasError: (body.Error ?? null) !== null };
}

/** Waits for the removal from before the start on. */
async function removed(side: Side, body: object, begin: (id: string) => Promise<unknown>): Promise<unknown> {
  const id = await create(side, { ...body, HostConfig: { AutoRemove: true } });
  const wait = waited(side, id, 'removed');
  const began = await begin(id);
  const result = await wait;
  const { status } = await side.api.get(`/containers/${id}/json`);
  return { began, result, status };
}

const actions = async ({ api }: Side, since: number): Promise<string[]> => {
  const { raw } = await api.get(`/events?since=${since}&until=${Math.ceil(Date.now() / 1000)}`);
  const lines = raw.toString().trim().split('\n');
  const events = lines.map((line) => JSON.parse(line) as { Type: string; Action: string });
  return events.filter(({ Type }) => Type !== 'network').map(({ Type, Action }) => `${Type} ${Action}`);
};

export const automaticRemovalRows: readonly NewerRow[] = [
  {
    title: 'AutoRemove after the end',
    work: async (side) =>
      await removed(side, { Cmd: ['sh', '-c', 'exit 3'] }, async (id) => (await start(side, id)).status),
  },
  {
    title: 'AutoRemove with a volume, and its events',
    work: async (side) => {
      const since = Date.now() / 1000;
      const end = await removed(side, { Cmd: ['true'], Volumes: { '/v': {} } }, async (id) => {
        return (await start(side, id)).status;
      });
      const { body } = await side.api.get<{ Volumes: object[] | null }>('/volumes');
      return { end, volumes: (body.Volumes ?? []).length, events: (await actions(side, since)).toSorted() };
    },
  },
  {
    title: 'AutoRemove after a failed start',
    work: async (side) => await removed(side, { Cmd: ['/nope'] }, async (id) => (await start(side, id)).status >= 400),
  },
  {
    title: 'AutoRemove after a kill, and a stop',
    work: async (side) => [
      await removed(side, { Cmd: ['sleep', '1000'] }, async (id) => {
        await start(side, id);
        return (await side.api.post(`/containers/${id}/kill`)).status;
      }),
      await removed(side, { Cmd: ['sleep', '1000'] }, async (id) => {
        await start(side, id);
        return (await side.api.post(`/containers/${id}/stop?t=0`)).status;
      }),
    ],
  },
  {
    title: 'AutoRemove over a restart',
    work: async (side) => {
      const id = await create(side, { Cmd: ['sleep', '1000'], HostConfig: { AutoRemove: true } });
      await start(side, id);
      const { status } = await side.api.post(`/containers/${id}/restart?t=0`);
      const after = (await side.api.get<{ State: { Status: string } }>(`/containers/${id}/json`)).body.State.Status;
      const { status: removal } = await side.api.delete(`/containers/${id}?force=1`);
      return { status, after, removal };
    },
  },
  {
    title: 'AutoRemove beside a restart policy',
    work: async ({ api }) => {
      const HostConfig = { AutoRemove: true, RestartPolicy: { Name: 'always' } };
      const { status, body } = await api.post<Body>('/containers/create', { Image: 'busybox', HostConfig });
      return { status, message: body.message };
    },
  },
  {
    title: 'wait for the end of a run, also the next one',
    work: async (side) => {
      const id = await create(side, { Cmd: ['sh', '-c', 'exit 4'] });
      const before = await waited(side, id, 'not-running');
      const next = waited(side, id, 'next-exit');
      await start(side, id);
      const ended = [await next, await waited(side, id, 'not-running')];
      const again = waited(side, id, 'next-exit');
      await start(side, id);
      return { before, ended, again: await again, removed: await removedBeside(side, id) };
    },
  },
  {
    title: 'wait after a failed start',
    work: async (side) => {
      const id = await create(side, { Cmd: ['/nope'] });
      await start(side, id);
      return await waited(side, id, 'not-running');
    },
  },
  {
    title: 'wait for the next exit over a failed start, until the removal',
    work: async (side) => {
      const id = await create(side, { Cmd: ['/nope'] });
      const next = waited(side, id, 'next-exit');
      await start(side, id);
      await side.api.delete(`/containers/${id}`);
      return await next;
    },
  },
  {
    title: 'wait for an unknown condition',
    work: async (side) => {
      const id = await create(side, { Cmd: ['true'] });
      return (await side.api.post<Body>(`/containers/${id}/wait?condition=soon`)).status;
    },
    differs: { ours: 400, why: 'the refusal, which dockerd has from 24.0 on' },
  },
  {
    title: 'wait for an unknown container',
    work: async (side) => (await side.api.post('/containers/nope/wait?condition=removed')).status,
  },
  {
    title: 'docker run --rm',
    work: async (side) => [
      await docker(side, ['run', '--rm', 'busybox', 'sh', '-c', 'echo out; exit 5']),
      await docker(side, ['run', '--rm', '-i', 'busybox', 'cat']),
      await docker(side, ['run', '--rm', 'busybox', '/nope']),
      await docker(side, ['ps', '--all', '--quiet', '--filter', 'status=exited', '--filter', 'exited=5']),
    ],
  },
];

async function start({ api }: Side, id: string): Promise<{ status: number }> {
  return await api.post(`/containers/${id}/start`);
}

async function removedBeside(side: Side, id: string): Promise<unknown> {
  const wait = waited(side, id, 'removed');
  await side.api.delete(`/containers/${id}`);
  return await wait;
}
