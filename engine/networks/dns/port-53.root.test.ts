import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

/** Asks for an address by TCP and by UDP, with a server at 127.0.0.11; answers with the last four bytes of each answer. */
const ASK = `
const question = Buffer.concat([Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3]), Buffer.from('web'),
  Buffer.from([0, 0, 1, 0, 1])]);
const shown = (answer) => [...answer.subarray(-4)].join('.');
const byUdp = new Promise((resolve) => {
  const socket = require('node:dgram').createSocket('udp4');
  socket.on('message', (answer, { address, port }) => {
    resolve(address + ':' + port + ' ' + shown(answer));
    socket.close();
  });
  socket.send(question, 53, '127.0.0.11');
});
const byTcp = new Promise((resolve) => {
  const socket = require('node:net').connect(53, '127.0.0.11');
  socket.write(Buffer.concat([Buffer.from([0, question.length]), question]));
  let got = Buffer.alloc(0);
  socket.on('data', (more) => {
    got = Buffer.concat([got, more]);
    if (got.length < 2 || got.length < 2 + got.readUInt16BE()) return;
    resolve(socket.remoteAddress + ':' + socket.remotePort + ' ' + shown(got));
    socket.destroy();
  });
});
Promise.all([byUdp, byTcp]).then((answers) => process.stdout.write(JSON.stringify(answers)));`;

/** How many connections the kernel tracks in a namespace. */
const TRACKED = 'cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null || echo 0';

/** Lets only questions out as new connections, and only their answers in. */
const FIREWALL = `
add table ip firewall
add chain ip firewall in { type filter hook input priority 0; policy drop; }
add chain ip firewall out { type filter hook output priority 0; policy drop; }
add rule ip firewall in ct state established accept
add rule ip firewall in ct state new ip daddr 127.0.0.11 accept
add rule ip firewall out ct state new ip daddr 127.0.0.11 accept
add rule ip firewall out ct state established accept`;

test('a question has no connection of the container tracked, and passes a firewall in it that tracks them', async () => {
  await using engine = await TestEngine.start();
  await engine.post('/networks/create', { Name: 'one' });
  const HostConfig = { NetworkMode: 'one' };
  await engine.run(['sleep', '1000'], { HostConfig }, 'web');
  await engine.run(['sleep', '1000'], { HostConfig }, 'asking');
  const inspected = async (name: string): Promise<Inspect> =>
    (await engine.get<Inspect>(`/containers/${name}/json`)).body;
  const netns = `--net=/proc/${(await inspected('asking')).State.Pid}/ns/net`;
  const inside = async (...command: string[]): Promise<string> =>
    (await execute('nsenter', [netns, ...command], { timeout: 120_000 })).stdout;
  const answers = async (): Promise<unknown> => JSON.parse(await inside(process.execPath, '-e', ASK)) as unknown;
  const address = (await inspected('web')).NetworkSettings.Networks['one']!.IPAddress;
  const both = Array<string>(2).fill(`127.0.0.11:53 ${address}`);

  assert.deepEqual(await answers(), both);
  assert.equal((await inside('sh', '-c', TRACKED)).trim(), '0');
  await inside('nft', FIREWALL);
  assert.deepEqual(await answers(), both);
});
