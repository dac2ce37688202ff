import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MAX_GROWTH_MB = 64;
const CLIENTS = 100;
const LOG_CLIENTS = 300;
const UPGRADE = ['Connection: Upgrade', 'Upgrade: tcp'];

/** Clients that read the beginning of a stream, then a byte now and then. */
suite('slow readers', { concurrency: false }, () => {
  let engine: TestEngine;
  let writer: string;
  before(async () => {
    engine = await TestEngine.start();
    const alone = { HostConfig: { NetworkMode: 'none' } };
    writer = await engine.run(
      ['sh', '-c', 'yes 0123456789012345678901234567890 | head -c 30000000; exec sleep 1000'],
      alone,
      'writer',
    );
    await engine.run(['sh', '-c', 'dd if=/dev/zero of=/large bs=1M count=50; exec sleep 1000'], alone, 'large');
    assert.equal((await engine.post('/commit?container=large&repo=large')).status, 201);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function begin(request: string, headers: readonly string[] = [], body = ''): Promise<Socket> {
    const socket = connect({ path: engine.socketPath });
    await once(socket, 'connect');
    socket.write([`${request} HTTP/1.1`, 'Host: x', ...headers, '', body].join('\r\n'));
    await once(socket, 'readable');
    return socket;
  }

  async function execOf(command: readonly string[]): Promise<Socket> {
    const exec = { Cmd: command, AttachStdout: true };
    const { body } = await engine.post<{ Id: string }>(`/containers/${writer}/exec`, exec);
    const json = ['Content-Type: application/json', 'Content-Length: 2'];
    return await begin(`POST /exec/${body.Id}/start`, [...UPGRADE, ...json], '{}');
  }

  const streams: readonly (readonly [name: string, begin: () => Promise<Socket>])[] = [
    ['the log', async () => await begin('GET /containers/writer/logs?stdout=1&follow=1')],
    ['attach', async () => await begin('POST /containers/writer/attach?stream=1&stdout=1&logs=1', UPGRADE)],
    ['exec', async () => await execOf(['yes'])],
    ['events', async () => await begin('GET /events?since=1')],
    ['statistics', async () => await begin('GET /containers/writer/stats')],
    ['export', async () => await begin('GET /containers/large/export')],
    ['save', async () => await begin('GET /images/large/get')],
    ['archive', async () => await begin('GET /containers/large/archive?path=/large')],
  ];
  for (const [name, open] of streams) {
    test(`of ${name} cost little memory, and others are served`, async () => {
      const first = await open(); // its threads and functions are there now

      const isLog = name === 'the log';
      await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
        const sockets = await Promise.all(Array.from({ length: isLog ? LOG_CLIENTS : CLIENTS }, open));
        for (let n = 0; n < 200; n += 1) {
          if (n % 20 === 0) for (const socket of sockets) socket.read(1);
          assert.equal((await engine.post(`/volumes/create`, { Name: `v${n % 10}` })).status, 201);
        }
        for (const socket of sockets) socket.destroy();
      });
      first.destroy();
    });
  }
});
