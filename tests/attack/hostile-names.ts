/**
 * Hostile clients and a hostile name server, as a program in a container's network namespace: `node hostile-names.ts
 * PORT SEED QUESTIONS`. The resolver is at 127.0.0.11, the server at 127.0.0.53.
 *
 * Prints how many questions it has asked of each kind, and how they were answered, as JSON. It fails if a valid
 * question gets no answer.
 */
import { createSocket } from 'node:dgram';
import { on, once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

import { Dice } from './random.ts';

const RESOLVER = '127.0.0.11';
const SERVER = '127.0.0.53';
const AT_ONCE = 24;
const PATIENCE_MS = 120_000;
const TYPES = [1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 255, 0, 65_535];

const [port, seed, questions] = process.argv.slice(2).map(Number) as [number, number, number];
const dice = new Dice(seed);
const counts: Record<string, number> = {};
const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);

const word = (value: number): Buffer => Buffer.from([(value >> 8) & 255, value & 255]);
const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => dice.upTo(256)));
const framed = (message: Buffer): Buffer => Buffer.concat([word(message.length), message]);

function mutated(message: Buffer, from = 0): Buffer {
  let result = Buffer.from(message);
  for (let times = 1 + dice.upTo(4); times > 0; times -= 1) {
    const at = from + dice.upTo(Math.max(1, result.length - from));
    const how = dice.upTo(4);
    if (how === 0) result[at] = dice.pick([0, 1, 63, 64, 0x80, 0xc0, 0xff, dice.upTo(256)]);
    else if (how === 1) result = result.subarray(0, at);
    else if (how === 2) result = Buffer.concat([result.subarray(0, at), bytes(dice.upTo(40)), result.subarray(at)]);
    else result = Buffer.concat([result, bytes(dice.upTo(600))]);
    if (result.length <= from) break;
  }
  return result;
}

/** Labels of any bytes but those that are refused: dots and zeros. */
function name(): Buffer {
  if (dice.chance(0.05)) return Buffer.from('\u0003web\u0000', 'latin1');
  const parts: Buffer[] = [];
  for (let left = 1 + dice.upTo(250); left > 1;) {
    const size = Math.min(1 + dice.upTo(63), left - 1);
    const label = bytes(size).map((byte) => (byte === 0 || byte === 0x2e ? 0x61 : byte));
    parts.push(Buffer.from([size]), Buffer.from(label));
    left -= size + 1;
    if (dice.chance(0.5)) break;
  }
  return Buffer.concat([...parts, Buffer.from([0])]);
}

function question(id: number): Buffer {
  const edns = dice.chance(0.4);
  const head = Buffer.concat([word(id), Buffer.from([1, 0x10 * dice.upTo(2), 0, 1, 0, 0, 0, 0, 0, edns ? 1 : 0])]);
  const asked = Buffer.concat([name(), word(dice.pick(TYPES)), word(dice.pick([1, 1, 1, 3, 255]))]);
  const option = Buffer.concat([Buffer.from([0, 0, 41]), word(dice.upTo(65_536)), bytes(4), word(0)]);
  return Buffer.concat([head, asked, ...(edns ? [option] : [])]);
}

function endOfQuestion(message: Buffer): number {
  let at = 12;
  while (message[at]! > 0) at += message[at]! + 1;
  return at + 5;
}

/** Loops of compressed names, times without end, counts that lie, records that end beyond the message. */
function records(at: number): Buffer {
  const names = [[0xc0, 12], [0xc0, at], [0xc0, at + 2], [0xff, 0xff], [0], [63], [0x40, 1], [1, 0x61, 0xc0, at]];
  const ttl = dice.pick([
    [0, 0, 0, 0],
    [0, 0, 0, 60],
    [0x7f, 0xff, 0xff, 0xff],
    [0xff, 0xff, 0xff, 0xff],
  ]);
  const content = bytes(dice.upTo(40));
  const size = dice.chance(0.8) ? content.length : dice.pick([0, 65_535, content.length + 1]);
  return Buffer.concat([
    Buffer.from(dice.pick(names)),
    word(dice.pick(TYPES)),
    word(1),
    Buffer.from(ttl),
    word(size),
    content,
  ]);
}

function answer(query: Buffer, largest: number): Buffer {
  const head = Buffer.from(query.subarray(0, endOfQuestion(query)));
  head[2] = 0x81 | (dice.chance(0.1) ? 2 : 0);
  head[3] = 0x80 | dice.pick([0, 0, 0, 2, 3, 5, dice.upTo(16)]);
  const how = dice.upTo(6);
  const parts = Array.from({ length: how === 0 ? 0 : 1 + dice.upTo(how === 1 ? 30 : 3) }, () => records(head.length));
  for (const at of [6, 8, 10]) word(dice.pick([0, 1, parts.length, 65_535])).copy(head, at);
  let whole: Buffer = Buffer.concat([head, ...parts]);
  if (how === 2) whole = Buffer.concat([whole, bytes(dice.upTo(4096))]);
  if (how === 3) whole = mutated(whole, head.length);
  return whole.subarray(0, largest);
}

/** A wrong answer that the resolver must ignore is followed by the right one. */
function beginServer(): void {
  const udp = createSocket('udp4');
  udp.on('message', (query, { port: to, address }) => {
    const say = (message: Buffer): void => udp.send(message, to, address, () => undefined);
    const right = answer(query, 60_000);
    if (dice.chance(0.003)) return; // never
    if (dice.chance(0.2)) say(Buffer.concat([bytes(2), right.subarray(2)]));
    if (dice.chance(0.2)) say(mutated(right));
    if (dice.chance(0.1)) say(bytes(dice.upTo(64)));
    say(right);
  });
  udp.bind(53, SERVER);
  createServer((client) => {
    client
      .on('error', () => client.destroy())
      .on('data', (data) => {
        if (data.length < 14) return;
        const query = Buffer.from(data).subarray(2);
        const whole = framed(
          dice.chance(0.2) ? Buffer.concat([answer(query, 4000), Buffer.alloc(60_000)]) : answer(query, 65_535),
        );
        const how = dice.upTo(8);
        if (how === 0) client.end(mutated(whole));
        else if (how === 1) client.destroy();
        else if (how === 2) client.end(whole.subarray(0, dice.upTo(whole.length)));
        else if (how === 3) for (const byte of whole.subarray(0, 300)) client.write(Buffer.from([byte]));
        else client.write(whole);
        if (how === 3) client.write(whole.subarray(300));
      });
  }).listen(53, SERVER);
}

/** The port may have been that of an abandoned question, whose answer comes late: it has another id. */
async function byUdp(message: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4').bind(0);
  try {
    const messages = on(socket, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) }) as AsyncIterable<[Buffer]>;
    socket.send(message, port, RESOLVER);
    for await (const [reply] of messages)
      if (reply.length < 2 || reply.readUInt16BE(0) === message.readUInt16BE(0)) return reply;
    throw new Error('unreachable: the iteration ends with a reply or the timeout');
  } finally {
    socket.close();
  }
}

async function open(): Promise<Socket> {
  const socket = connect({ port, host: RESOLVER });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function byTcp(message: Buffer): Promise<Buffer> {
  const socket = await open();
  try {
    const whole = framed(message);
    const cut = dice.upTo(whole.length);
    socket.write(whole.subarray(0, cut));
    await setTimeout(dice.upTo(3));
    socket.write(whole.subarray(cut));
    const chunks: Buffer[] = [];
    for (let size = 0; size < 2 || size < Buffer.concat(chunks).readUInt16BE(0) + 2;) {
      const [chunk] = (await once(socket, 'data', { signal: AbortSignal.timeout(PATIENCE_MS) })) as [Buffer];
      chunks.push(chunk);
      size += chunk.length;
    }
    return Buffer.concat(chunks).subarray(2);
  } finally {
    socket.destroy();
  }
}

/** Nobody waits for an answer to these. */
async function throwAway(): Promise<void> {
  const message = dice.chance(0.8) ? mutated(question(dice.upTo(65_536))) : bytes(dice.upTo(6000));
  if (dice.chance(0.6)) {
    const socket = createSocket('udp4');
    await new Promise<void>((sent) => {
      socket.send(message, port, RESOLVER, () => sent());
    });
    socket.close();
    return;
  }
  const socket = await open();
  socket.write(dice.chance(0.5) ? framed(message) : message);
  if (dice.chance(0.5)) socket.write(bytes(dice.upTo(9000)));
  await setTimeout(dice.upTo(5));
  if (dice.chance(0.5)) socket.resetAndDestroy();
  else socket.destroy();
}

async function askOne(): Promise<void> {
  if (dice.chance(0.4)) {
    count('thrown away');
    await throwAway();
    return;
  }
  const id = dice.upTo(65_536);
  const kind = dice.chance(0.6) ? 'udp' : 'tcp';
  const reply = await (kind === 'udp' ? byUdp(question(id)) : byTcp(question(id)));
  if (reply.length < 12 || reply.readUInt16BE(0) !== id || (reply[2]! & 0x80) === 0)
    throw new Error(`${kind}: ${reply.toString('hex')}`);
  count(`${kind} ${reply[3]! & 15}`);
}

beginServer();
let asked = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (asked < questions) {
      asked += 1;
      await askOne();
    }
  }),
);
process.stdout.write(JSON.stringify(counts), () => process.exit());
