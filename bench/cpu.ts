import { readFileSync } from 'node:fs';

import type { Api } from '@gantry/testing/api.ts';

import type { Row } from './measure.ts';

/** An engine, and the process whose CPU time counts. */
type Side = Readonly<{ api: Api; pid: number }>;

const FOLLOWERS = 20;
const FOLLOWED_LINES = 50_000;

export const FOLLOWED = `CPU of ${FOLLOWERS} followers of one log`;

/** From the first line of a container to the end of its log, which all clients get. */
export async function followersCpu(ours: Side, theirs: Side): Promise<Row> {
  return await ratio(FOLLOWED, 0.5, ours, theirs, async ({ api, pid }) => {
    const script = `read go; i=0; while [ $i -lt 50 ]; do seq ${FOLLOWED_LINES / 50}; i=$((i+1)); usleep 20000; done`;
    const id = await start(api, ['sh', '-c', script], { OpenStdin: true, StdinOnce: true });
    const clients = await Promise.all(
      Array.from(
        { length: FOLLOWERS },
        async () => await api.stream('GET', `/containers/${id}/logs?follow=1&stdout=1&stderr=1`),
      ),
    );
    const before = cpuMs(pid);
    const { socket } = await api.hijack(`/containers/${id}/attach?stream=1&stdin=1`);
    socket.on('error', () => undefined).end('go\n');
    await Promise.all(
      clients.map(async (client) => {
        let bytes = 0;
        for await (const chunk of client) bytes += (chunk as Buffer).length;
        if (bytes < FOLLOWED_LINES * 10) throw new Error(`a follower got ${bytes} bytes`);
      }),
    );
    const spent = cpuMs(pid) - before;
    await api.delete(`/containers/${id}?force=1`);
    return spent;
  });
}

async function ratio(
  name: string,
  atMost: number,
  ours: Side,
  theirs: Side,
  measure: (side: Side) => Promise<number>,
): Promise<Row> {
  const [mine, other] = [await measure(ours), await measure(theirs)];
  return { name, unit: 'ms', ours: mine, theirs: other, ratio: mine / other, atMost };
}

async function start(api: Api, command: readonly string[], more: object): Promise<string> {
  const HostConfig = { NetworkMode: 'none' };
  const body = { Image: 'busybox', Cmd: command, HostConfig, ...more };
  const created = await api.post<{ Id: string }>('/containers/create', body);
  const started = await api.post(`/containers/${created.body.Id}/start`);
  if (started.status !== 204) throw new Error(`start answered ${started.status}: ${started.raw.toString()}`);
  return created.body.Id;
}

/** Processor time of all threads of a process, also those that have ended, in steps of 10 ms. */
function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
