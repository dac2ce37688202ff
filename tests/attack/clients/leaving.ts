import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename } from 'node:path';

import { eventually } from '@gantry/testing/eventually.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

/** A descriptor or process of each request would be this many; threads that begin later have fewer. */
const LEAVES = 8;
/** Answers to others meanwhile, until the first client's request has gone as well. */
const PINGS = 20;

export type ClientRequest = Readonly<{
  /** Such as `GET /events`. */
  line: string;
  headers?: readonly string[];
  body?: Buffer;
}>;

type Open = Readonly<{ descriptors: number; processes: number }>;

/** Connects and sends the head, and the body up to `bytes`. */
export async function begin(
  socketPath: string,
  { line, headers = [], body }: ClientRequest,
  bytes = Infinity,
): Promise<Socket> {
  const socket = connect({ path: socketPath }).on('error', () => undefined);
  await once(socket, 'connect');
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
  socket.write([`${line} HTTP/1.1`, 'Host: x', ...headers, ...length, '', ''].join('\r\n'));
  if (body !== undefined) await sent(socket, body.subarray(0, bytes));
  return socket;
}

/** Runs `leave` eight times, and waits until the engine has no more descriptors and processes than after one. */
export async function leavesNothing(engine: TestEngine, leave: () => Promise<void>): Promise<void> {
  await leave(); // what is opened once is open now
  const before = await lowest(engine);

  for (let n = 0; n < LEAVES; n += 1) await leave();

  await eventually('descriptors and processes of before', () => {
    const now = openNow(engine);
    return now.descriptors < before.descriptors + LEAVES && now.processes < before.processes + LEAVES;
  });
}

async function lowest(engine: TestEngine): Promise<Open> {
  let least = { descriptors: Infinity, processes: Infinity };
  for (let n = 0; n < PINGS; n += 1) {
    await engine.get('/_ping');
    const now = openNow(engine);
    least = {
      descriptors: Math.min(least.descriptors, now.descriptors),
      processes: Math.min(least.processes, now.processes),
    };
  }
  return least;
}

/** Processes of an engine name its folder. */
function openNow({ pid, directory }: TestEngine): Open {
  const name = basename(directory);
  const processes = readdirSync('/proc').filter((one) => /^\d+$/.test(one) && commandLine(one).includes(name));
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, processes: processes.length };
}

async function sent(socket: Socket, bytes: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.write(bytes, () => resolve());
  await promise;
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return ''; // it has ended
    throw error;
  }
}
