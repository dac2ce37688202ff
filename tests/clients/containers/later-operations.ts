import { setTimeout as sleep } from 'node:timers/promises';

import type { LaterRow, LaterSide } from './later-fields.ts';

type Json = Record<string, unknown>;

const RAW = 'application/vnd.docker.raw-stream';
const FRAMED = 'application/vnd.docker.multiplexed-stream';

/** Runs work with a running container, and removes it. */
async function withRunning<T>({ api }: LaterSide, body: Json, work: (ref: string) => Promise<T>): Promise<T> {
  const { body: made } = await api.post<{ Id: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['sleep', '1000'],
    ...body,
  });
  try {
    await api.post(`/containers/${made.Id}/start`);
    return await work(made.Id);
  } finally {
    await api.delete(`/containers/${made.Id}?force=1&v=1`);
  }
}

const streams = (Tty: boolean, expected: LaterRow['expected']): LaterRow => ({
  title: `content types of logs, attach and exec ${Tty ? 'with' : 'without'} a terminal`,
  work: async (side) =>
    await withRunning(side, { Tty }, async (ref) => {
      const { api } = side;
      const { headers: logs } = await api.get(`/containers/${ref}/logs?stdout=1`);
      const attached = await api.hijack(`/containers/${ref}/attach?stream=1&stdout=1`);
      attached.socket.destroy();
      const made = async (): Promise<string> => {
        const exec = { AttachStdout: true, Tty, Cmd: ['true'] };
        return (await api.post<{ Id: string }>(`/containers/${ref}/exec`, exec)).body.Id;
      };
      const upgraded = await api.hijack(`/exec/${await made()}/start`, { body: { Tty } });
      upgraded.socket.destroy();
      const { headers: plain } = await api.post(`/exec/${await made()}/start`, { Tty });
      return [logs, attached.headers, upgraded.headers, plain].map((headers) => headers['content-type']);
    }),
  expected,
});

const terminal = (title: string, created: Json, started: Json, expected: LaterRow['expected']): LaterRow => ({
  title,
  work: async (side) =>
    await withRunning(side, {}, async (ref) => {
      // crun 1.8 starts the process of an exec before its terminal has a size.
      const Cmd = ['sh', '-c', 'until stty size 2>/dev/null | grep .; do sleep 0.1; done'];
      const { body: made } = await side.api.post<{ Id: string }>(`/containers/${ref}/exec`, {
        ...{ AttachStdout: true, Tty: true, Cmd },
        ...created,
      });
      const { raw } = await side.api.post(`/exec/${made.Id}/start`, { Tty: true, ...started });
      return raw.toString().trim();
    }),
  expected,
});

/** A process that says by its exit code which signal has ended it. */
const trap = ['sh', '-c', "trap 'exit 41' USR1; trap 'exit 42' TERM; echo ready; while :; do sleep 0.1; done"];

/** A signal before the trap would be lost: the first process has no default action. */
async function untilReady({ api }: LaterSide, ref: string): Promise<void> {
  for (;;) {
    const { raw } = await api.get(`/containers/${ref}/logs?stdout=1`);
    if (raw.includes('ready')) return;
    await sleep(100);
  }
}

async function exitCode({ api }: LaterSide, ref: string): Promise<unknown> {
  return (await api.get<{ State: Json }>(`/containers/${ref}/json`)).body.State.ExitCode;
}

export const LATER_OPERATIONS: readonly LaterRow[] = [
  streams(false, { '1.42': [FRAMED, FRAMED, FRAMED, RAW], '1.51': [FRAMED, FRAMED, FRAMED, RAW] }),
  streams(true, { '1.42': [RAW, RAW, RAW, RAW] }),
  terminal('ConsoleSize of an exec', { ConsoleSize: [12, 34] }, {}, { '1.42': '12 34' }),
  terminal('ConsoleSize of the start of an exec', {}, { ConsoleSize: [56, 78] }, { '1.42': '56 78' }),
  terminal('the second ConsoleSize counts', { ConsoleSize: [1, 2] }, { ConsoleSize: [3, 4] }, { '1.42': '3 4' }),
  {
    title: 'ConsoleSize of an exec without a terminal: ignored',
    work: async (side) =>
      await withRunning(side, {}, async (ref) => {
        const exec = { AttachStdout: true, ConsoleSize: [12, 34], Cmd: ['true'] };
        const { body: made } = await side.api.post<{ Id: string }>(`/containers/${ref}/exec`, exec);
        return (await side.api.post(`/exec/${made.Id}/start`, { ConsoleSize: [12, 34] })).status;
      }),
    expected: { '1.42': 200 },
  },
  {
    title: 'stop with a signal',
    work: async (side) =>
      await withRunning(side, { Cmd: trap }, async (ref) => {
        await untilReady(side, ref);
        const { status } = await side.api.post(`/containers/${ref}/stop?signal=SIGUSR1&t=600`);
        return [status, await exitCode(side, ref)];
      }),
    expected: { '1.42': [204, 41], '1.51': [204, 41] },
  },
  {
    title: 'restart with a signal',
    work: async (side) =>
      await withRunning(side, { Cmd: trap }, async (ref) => {
        await untilReady(side, ref);
        const { status } = await side.api.post(`/containers/${ref}/restart?signal=USR1&t=600`);
        const { body } = await side.api.get<{ State: Json }>(`/containers/${ref}/json`);
        return [status, body.State.Running];
      }),
    expected: { '1.42': [204, true] },
  },
  {
    title: 'stop and restart with an invalid signal: refused, and it goes on',
    work: async (side) =>
      await withRunning(side, {}, async (ref) => {
        const stop = await side.api.post<{ message: string }>(`/containers/${ref}/stop?signal=odd&t=0`);
        const restart = await side.api.post<{ message: string }>(`/containers/${ref}/restart?signal=odd&t=0`);
        const { body } = await side.api.get<{ State: Json }>(`/containers/${ref}/json`);
        return [stop.status, restart.status, body.State.Running];
      }),
    expected: { '1.42': [400, 400, true] },
    chosen: 'dockerd 28.5 answers 500, and the container has ended',
  },
  {
    title: 'Annotations and Health of GET /containers/json',
    work: async (side) => {
      const checked = {
        Healthcheck: { Test: ['CMD', 'true'], Interval: 3_600e9, StartPeriod: 3_600e9, StartInterval: 1e9 },
      };
      return await withRunning(side, { ...checked, HostConfig: { Annotations: { a: 'b' } } }, async (ref) => {
        type Listed = { HostConfig: Json; Health?: { Status: string; FailingStreak: number } };
        const filters = encodeURIComponent(JSON.stringify({ id: [ref] }));
        for (;;) {
          const { body } = await side.api.get<Listed[]>(`/containers/json?filters=${filters}`);
          if (body[0]?.Health?.Status !== 'starting') return [body[0]?.HostConfig.Annotations, body[0]?.Health];
          await sleep(200);
        }
      });
    },
    expected: { '1.55': [{ a: 'b' }, { Status: 'healthy', FailingStreak: 0 }] },
    chosen: 'Health is of 1.52',
  },
  {
    title: 'an update of the limits of block devices',
    work: async (side) =>
      await withRunning(side, {}, async (ref) => {
        const update = async (body: Json): Promise<number> =>
          (await side.api.post(`/containers/${ref}/update`, body)).status;
        const shown = async (): Promise<unknown> =>
          (await side.api.get<{ HostConfig: Json }>(`/containers/${ref}/json`)).body.HostConfig.BlkioDeviceReadBps;
        return [
          await update({ BlkioDeviceReadBps: [{ Path: '/dev/nosuch', Rate: 1 }] }),
          await shown(),
          await update({ BlkioDeviceReadBps: [] }),
        ];
      }),
    expected: { '1.54': [200, null, 200], '1.55': [400, null, 200] },
    chosen: 'dockerd 28.5 does not know them',
  },
  {
    title: 'os_type of statistics',
    work: async (side) =>
      await withRunning(side, {}, async (ref) => {
        return (await side.api.get<Json>(`/containers/${ref}/stats?stream=0&one-shot=1`)).body.os_type;
      }),
    expected: { '1.52': 'linux' },
  },
];
