import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const UPSTREAM = '192.0.2.53';
const MEMBERS = 31;

/**
 * Asks 127.0.0.11 for an address by UDP: `node -e ASK NAME ROOM`, where ROOM is what EDNS offers, 0 without EDNS. Answers
 * with what the answer's head and its last record say.
 */
const ASK = `
const [name, room] = process.argv.slice(1);
const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
const opt = room === '0' ? [] : [0, 0, 41, room >> 8, room & 255, 0, 0, 0, 0, 0, 0];
const head = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, opt.length > 0 ? 1 : 0];
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (answer) => {
  const address = [...answer.subarray(-4)].join('.');
  const [isCut, answers, more] = [(answer[2] & 2) !== 0, answer.readUInt16BE(6), answer.readUInt16BE(10)];
  process.stdout.write(JSON.stringify({ isCut, answers, more, size: answer.length, address }));
  socket.close();
});
socket.send(Buffer.from([...head, ...labels, 0, 0, 1, 0, 1, ...opt]), 53, '127.0.0.11');`;

/**
 * Sends a question a hundred times, in different letters, and then another one; prints how many were answered with their own
 * number and letters, and the different addresses.
 */
const ASK_OFTEN = `
const socket = require('node:dgram').createSocket('udp4');
const labels = (name) => name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
const query = (id, name) => Buffer.from([0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels(name), 0, 0, 1, 0, 1]);
const written = (n) => (n % 2 === 0 ? 'held' : 'HeLD') + '.together.example';
const rights = new Set();
const addresses = new Set();
socket.on('message', (answer) => {
  const id = answer[1];
  if (id === 200) return;
  if (answer.subarray(12, 30).equals(query(id, written(id)).subarray(12, 30))) rights.add(id);
  addresses.add([...answer.subarray(-4)].join('.'));
  if (rights.size === 100) socket.close(() => console.log(JSON.stringify([rights.size, addresses.size])));
});
for (let n = 0; n < 100; n += 1) socket.send(query(n, written(n)), 53, '127.0.0.11');
socket.send(query(200, 'release.together.example'), 53, '127.0.0.11');`;

type Answer = { isCut: boolean; answers: number; more: number; size: number; address: string };

suite('questions of containers', { concurrency: false }, () => {
  let engine: TestEngine;
  let netns: string;
  const asked: string[] = [];
  const parts = new AsyncDisposableStack();

  before(async () => {
    engine = parts.use(await TestEngine.start({ flags: [`--dns=${UPSTREAM}`] }));
    await engine.onHost(['ip', 'address', 'add', `${UPSTREAM}/32`, 'dev', 'lo']);
    const program = join(import.meta.dirname, '../../../testing/networks/name-server.ts');
    const upstream = spawn('nsenter', [`--net=${engine.netns}`, process.execPath, program, UPSTREAM], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    parts.defer(async () => {
      upstream.kill('SIGKILL');
      await once(upstream, 'close');
    });
    const lines = createInterface(upstream.stdout);
    await once(lines, 'line');
    lines.on('line', (line) => asked.push(line));
    await engine.post('/networks/create', { Name: 'one' });
    const HostConfig = { NetworkMode: 'one', DnsSearch: ['inner.example'], DnsOptions: ['ndots:2'] };
    await engine.run(['sleep', '1000'], { HostConfig }, 'asking');
    const { body } = await engine.get<Inspect>('/containers/asking/json');
    netns = `--net=/proc/${body.State.Pid}/ns/net`;
  });
  after(async () => await parts.disposeAsync());

  async function ask(name: string, room: number): Promise<Answer> {
    const words = [netns, process.execPath, '-e', ASK, name, String(room)];
    return JSON.parse((await execute('nsenter', words, { timeout: 120_000 })).stdout) as Answer;
  }

  test('an answer is as large as EDNS offers room for; without it 512 bytes', async () => {
    const NetworkingConfig = { EndpointsConfig: { one: { Aliases: ['parts-of-a-whole'] } } };
    const body = { HostConfig: { NetworkMode: 'one' }, NetworkingConfig };
    for (let n = 0; n < MEMBERS; n += 1) await engine.run(['sleep', '1000'], body);

    const [plain, small, large] = [
      await ask('parts-of-a-whole', 0),
      await ask('parts-of-a-whole', 100),
      await ask('parts-of-a-whole', 4096),
    ];

    assert.deepEqual([plain.isCut, plain.size <= 512, plain.more], [true, true, 0]);
    assert.deepEqual([small.isCut, small.size <= 512, small.more], [true, true, 1]);
    assert.deepEqual([large.isCut, large.answers, large.more], [false, MEMBERS, 1]);
  });

  test('a question that a container asks a hundred times at once is sent once, and answered to each', async () => {
    const words = [netns, process.execPath, '-e', ASK_OFTEN];
    const { stdout } = await execute('nsenter', words, { timeout: 120_000 });

    assert.deepEqual(JSON.parse(stdout), [100, 1]);
    assert.equal(asked.filter((name) => /^held/i.test(name)).length, 1);
  });

  test('a program of the container searches in its domains', async () => {
    const Cmd = ['ping', '-c', '1', '-w', '60', '-q', 'searched'];
    const { body } = await engine.post<{ Id: string }>('/containers/asking/exec', {
      ...{ Cmd, AttachStdout: true, AttachStderr: true, Tty: true },
    });
    const said = (await engine.post(`/exec/${body.Id}/start`, { Tty: true })).raw.toString();

    assert.match(said, /PING searched \(198\.51\.100\.\d+\)/);
    assert.ok(asked.includes('searched.inner.example'), asked.join());
  });

  test('an answer is kept for as long as its server allows, and not longer', async () => {
    const first = await ask('short-lived.example', 0);
    const times = (): number => asked.filter((name) => name === 'short-lived.example').length;
    assert.equal(times(), 1);

    const until = Date.now() + 60_000;
    let next = first;
    while (next.address === first.address && Date.now() < until) {
      await setTimeout(200);
      next = await ask('short-lived.example', 0);
    }

    assert.notEqual(next.address, first.address);
    const long = [await ask('long-lived.example', 0), await ask('long-lived.example', 0)];
    assert.equal(long[0]!.address, long[1]!.address);
    assert.equal(asked.filter((name) => name === 'long-lived.example').length, 1);
  });
});
