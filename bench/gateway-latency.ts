/**
 * What a proxy adds to the time of an answer while it has half of what it can do: requests at a steady rate, whose 99th
 * percentile is compared with that of the upstream itself at the same rate, in turn.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { median } from './measure.ts';

const ROUNDS = 5;
const SECONDS = 2;
const CONNECTIONS = 32;
const TICK_MS = 1;

export type Timed = Readonly<{ name: string; port: number; atMostMs?: number }>;

/** `rate`: requests in a second. The last one of `timed` is the upstream itself. */
export async function compareLatency(what: string, rate: number, timed: readonly Timed[], requests: readonly string[]) {
  const added = new Map(timed.map(({ name }): [string, number[]] => [name, []]));
  for (let round = -1; round < ROUNDS; round += 1) {
    const p99 = new Map<string, number>();
    for (const { name, port } of timed) p99.set(name, percentile(await latencies(port, rate, requests), 0.99));
    const base = p99.get(timed.at(-1)!.name)!;
    if (round >= 0) for (const [name, value] of p99) added.get(name)!.push(value - base);
  }
  console.log(`\nAdded to the 99th percentile at ${Math.round(rate).toLocaleString('en')} requests/s (${what})\n`);
  console.log('| | ms | budget |\n|---|---|---|');
  for (const { name, atMostMs } of timed.slice(0, -1)) {
    const mine = median(added.get(name)!);
    const judged = atMostMs === undefined ? '' : `≤ ${atMostMs} ${mine <= atMostMs ? 'met' : 'NOT MET'}`;
    console.log(`| ${name} | ${mine.toFixed(2)} | ${judged} |`);
  }
}

/** Milliseconds of each answer. A request that finds no free connection waits, and that counts. */
async function latencies(port: number, rate: number, requests: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  const free: Socket[] = [];
  const due: number[] = [];
  let sent = 0;
  const send = (socket: Socket, at: number): void => {
    sent += 1;
    socket.write(requests[(sent * 7) % requests.length]!);
    times.set(socket, at);
  };
  const times = new Map<Socket, number>();
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, async () => await open(port)));
  for (const socket of sockets) {
    let left = -1;
    socket.on('data', (chunk: Buffer) => {
      left = left < 0 ? answerBytes(chunk) - chunk.length : left - chunk.length;
      if (left > 0) return;
      left = -1;
      found.push(performance.now() - times.get(socket)!);
      const next = due.shift();
      if (next === undefined) free.push(socket);
      else send(socket, next);
    });
    free.push(socket);
  }
  const started = performance.now();
  let asked = 0;
  while (performance.now() - started < SECONDS * 1000) {
    for (const now = performance.now(); asked < ((now - started) / 1000) * rate; asked += 1) {
      const socket = free.shift();
      if (socket === undefined) due.push(now);
      else send(socket, now);
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  for (const socket of sockets) socket.destroy();
  return found;
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

/** Of the head and the body; all of the head comes in the first piece. */
function answerBytes(first: Buffer): number {
  const head = first.indexOf('\r\n\r\n');
  const text = first.toString('latin1', 0, head);
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  if (!text.startsWith('HTTP/1.1 200') || length === undefined) throw new Error(`an unexpected answer:\n${text}`);
  return head + 4 + Number(length);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
