import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MAX_GROWTH_MB = 64;
const UPGRADE = ['Connection: Upgrade', 'Upgrade: tcp'];
const WEBSOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
];

/** Clients of the API that send more than they read, or bytes that must not count as requests. */
suite('connections', { concurrency: false }, () => {
  let engine: TestEngine;
  let quiet: string;
  before(async () => {
    engine = await TestEngine.start();
    quiet = await engine.run(['cat'], { OpenStdin: true, HostConfig: { NetworkMode: 'none' } }, 'quiet');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function open(): Promise<Socket> {
    const socket = connect({ path: engine.socketPath, allowHalfOpen: true });
    await once(socket, 'connect');
    return socket.on('error', () => undefined);
  }

  /** Waits until the daemon has closed a connection. */
  async function gone(socket: Socket): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (socket.closed || socket.readableEnded) return;
    socket.once('end', resolve).once('close', resolve).resume();
    await promise;
  }

  /** Sends bytes, and waits until the daemon takes no more of them and answers others. */
  async function flood(socket: Socket, bytes: Buffer): Promise<void> {
    const taken = (): number => bytes.length - socket.writableLength;
    socket.write(bytes);
    for (let before = -1; taken() !== before && socket.writableLength > 0;) {
      before = taken();
      for (let n = 0; n < 20; n += 1) await engine.get('/_ping');
    }
  }

  test('requests behind one that waits are not read before its answer', async () => {
    const id = await engine.run(['cat'], { OpenStdin: true, HostConfig: { NetworkMode: 'none' } });
    const request = `POST /v1.24/containers/${id}/wait HTTP/1.1\r\nHost: x\r\n\r\n`;
    const socket = await open();
    const session = new Session(socket);

    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      await flood(socket, Buffer.from(request.repeat(100_000)));
    });
    await engine.post(`/containers/${id}/kill`);
    await session.saw('{"StatusCode":137}HTTP/1.1 200 OK');
    socket.destroy();
  });

  test('a websocket that sends pings and does not read', async () => {
    const socket = await open();
    socket.write(
      [`GET /containers/${quiet}/attach/ws?stream=1 HTTP/1.1`, 'Host: x', ...WEBSOCKET, '', ''].join('\r\n'),
    );
    await once(socket, 'readable');
    const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 4, 0, 0, 0, 0]), Buffer.from('ping')]);

    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      await flood(socket, Buffer.alloc(10_000_000, ping));
    });
    socket.destroy();
  });

  test('a refused request is not followed by those in the stream behind it', async () => {
    const created = await engine.post<{ Id: string }>(`/containers/${quiet}/exec`, { Cmd: ['true'] });
    await engine.post(`/exec/${created.body.Id}/start`, { Detach: true });
    const behind = `DELETE /containers/quiet?force=1 HTTP/1.1\r\nHost: x\r\n\r\n`;
    const json = ['Content-Type: application/json', 'Content-Length: 2'];
    const cases: [string, string[], string][] = [
      ['POST /containers/nope/attach?stream=1&stdin=1', [], ''],
      ['POST /containers/nope/attach?stream=1&stdin=1', UPGRADE, ''],
      ['POST /containers/nope/%61ttach?stream=1&stdin=1', [], ''],
      ['POST /containers/no%2Fpe/attach', [], ''],
      ['POST /containers/%ff/attach', [], ''],
      ['POST //containers/nope/attach', [], ''],
      ['POST /containers/x/../nope/attach', [], ''],
      ['POST /containers/nope/attach/', [], ''],
      ['POST http://x/v1.24/containers/nope/attach', [], ''],
      ['POST /v9.99/containers/nope/attach', [], ''],
      ['POST /containers/nope/attach#x', [], ''],
      ['POST /exec/nope/start', json, '{}'],
      ['POST /exec/nope/start', [...UPGRADE, ...json], '{}'],
      [`POST /exec/${created.body.Id}/start`, [...UPGRADE, ...json], '{}'],
      ['GET /containers/nope/attach/ws', WEBSOCKET, ''],
      [`GET /containers/${quiet}/attach/ws`, ['Connection: Upgrade', 'Upgrade: websocket'], ''],
      ['GET /_ping', UPGRADE, ''],
    ];

    const answers = await Promise.all(
      cases.map(async ([request, headers, body]) => {
        const socket = await open();
        const session = new Session(socket);
        socket.write([`${request} HTTP/1.1`, 'Host: x', ...headers, '', body + behind].join('\r\n'));
        await session.ended;
        socket.destroy();
        return `${request} ${session.text.match(/HTTP\/1\.1 \d+/g)?.join()}`;
      }),
    );

    assert.deepEqual(
      answers.filter((answer) => !/ HTTP\/1\.1 (\d+)$/.test(answer) || answer.endsWith('500')),
      [],
    );
    const { status, body } = await engine.get<Inspect>('/containers/quiet/json');
    assert.deepEqual([status, body.State.Running], [200, true]);
  });

  test('attach by an encoded path is the stream of the container', async () => {
    const id = await engine.run(['cat'], { OpenStdin: true, StdinOnce: true, HostConfig: { NetworkMode: 'none' } });
    const socket = await open();
    const session = new Session(socket);

    const typed = 'DELETE /containers/quiet?force=1 HTTP/1.1\r\nHost: x\r\n\r\n';
    socket.end(`POST /containers/${id}/%61ttach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\nHost: x\r\n\r\n${typed}`);
    await session.ended;

    assert.match(session.text, /^HTTP\/1\.1 200 OK\r\n[^]*DELETE \/containers\/quiet/);
    assert.equal((await engine.get('/containers/quiet/json')).status, 200);
  });

  test('too many header fields are refused, with all behind them', async () => {
    const fields = Array.from({ length: 3000 }, (_, n) => `x${n}: 1`);
    for (const path of ['/containers/nope/attach', '/containers/quiet/wait']) {
      const socket = await open();
      const session = new Session(socket);

      const head = [`POST ${path} HTTP/1.1`, 'Host: x', ...fields, 'Content-Length: 5', '', ''].join('\r\n');
      socket.end(`${head}12345GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n`);
      await session.ended;

      assert.match(session.text, /^HTTP\/1\.1 400 [^]*the head is too long"\}$/);
    }
  });

  test('of thousands of connections without a request the oldest are closed, and half heads in time', async () => {
    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      const opened: Socket[] = [];
      for (let n = 0; n < 80; n += 1) opened.push(...(await Promise.all(Array.from({ length: 100 }, open))));
      for (const socket of opened.slice(3000)) socket.write('GET /_ping HTTP/1.1\r\nHost');
      await Promise.all(opened.map(gone));
      for (const socket of opened) socket.destroy();
    });
  });

  test('a half head ends in time, and a connection with an answered request stays', async () => {
    const answered = await open();
    const session = new Session(answered);
    answered.write('GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n');
    await session.saw('OK');
    const half = await open();
    half.resume().write('GET /_ping HTTP/1.1\r\nHost');

    await gone(half);
    answered.write('GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await session.ended;

    assert.match(session.text, /ApiVersion/);
  });

  test('a thousand clients follow at the same time', async () => {
    const clients = await Promise.all(Array.from({ length: 1000 }, open));
    const sessions = clients.map((socket) => new Session(socket));
    for (const [n, socket] of clients.entries()) {
      const path = n % 2 === 0 ? '/events' : `/containers/${quiet}/logs?follow=1&stdout=1`;
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    }
    await Promise.all(sessions.map(async (session) => await session.saw('HTTP/1.1 200 OK')));

    const written = (await engine.hijack(`/containers/${quiet}/attach?stream=1&stdin=1`, {})).socket;
    written.write('told\n');
    await engine.post('/volumes/create', { Name: 'told' });

    await Promise.all(sessions.map(async (session) => await session.saw('told')));
    for (const socket of [...clients, written]) socket.destroy();
  });
});
