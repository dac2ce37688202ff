import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Given = { headers?: string[]; body?: string; stdin?: string };

const UPGRADE = ['Connection: Upgrade', 'Upgrade: tcp'];

suite('clients that have half-closed', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function open(): Promise<Socket> {
    const socket = connect({ path: engine.socketPath, allowHalfOpen: true });
    await once(socket, 'connect');
    return socket;
  }

  /** Sends a request and the end of the client's side in one packet. */
  async function sendAndEnd(request: string, given: Given = {}): Promise<Session> {
    const { headers = [], body = '', stdin = '' } = given;
    const socket = await open();
    const session = new Session(socket);
    const lines = [`${request} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`, ...headers, '', body + stdin];
    if (body !== '') lines.splice(1, 0, 'Content-Type: application/json');
    socket.end(lines.join('\r\n'));
    return session;
  }

  async function exec(container: string, command: string): Promise<string> {
    const body = { Cmd: ['sh', '-c', command], AttachStdin: true, AttachStdout: true };
    return (await engine.post<{ Id: string }>(`/containers/${container}/exec`, body)).body.Id;
  }

  const withStdin = { OpenStdin: true, StdinOnce: true, AttachStdin: true };

  test('an empty stdin of the docker command line ends', async () => {
    const id = await engine.run(['sleep', '1000']);
    await engine.create(['cat'], withStdin, 'cat');

    for (const command of [`run -i --rm busybox cat`, `exec -i ${id} cat`, 'start -ai cat']) {
      const line = `docker -H unix://${engine.socketPath} ${command} </dev/null`;
      const { stdout } = await promisify(execFile)('sh', ['-c', line], { timeout: 120_000 });
      assert.equal(stdout, '', command);
    }
  });

  for (const headers of [UPGRADE, []]) {
    const how = headers.length > 0 ? 'with an upgrade' : 'without an upgrade';

    test(`the end of stdin may come with the head of an attach, ${how}`, async () => {
      for (const stdin of ['', 'typed\n', '\n', 'P', 'GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n']) {
        const id = await engine.run(['sh', '-c', 'cat; echo over'], withStdin);

        const session = await sendAndEnd(`POST /containers/${id}/attach?stream=1&stdin=1&stdout=1`, { headers, stdin });
        await session.ended;

        assert.match(session.text, headers.length > 0 ? /^HTTP\/1\.1 101 UPGRADED\r\n/ : /^HTTP\/1\.1 200 OK\r\n/);
        assert.equal((await engine.output(id)).stdout, `${stdin}over\n`);
      }
    });

    test(`the end of stdin may come with the head of an attach before the start, ${how}`, async () => {
      const id = await engine.create(['sh', '-c', 'cat; echo over'], withStdin);
      const request = `POST /containers/${id}/attach?stream=1&stdin=1&stdout=1`;
      const session = await sendAndEnd(request, { headers, stdin: 'early\n' });
      await session.saw('\r\n\r\n');

      await engine.post(`/containers/${id}/start`);
      await session.ended;

      assert.equal((await engine.output(id)).stdout, 'early\nover\n');
    });

    test(`the end of stdin may come with the head of an exec, ${how}`, async () => {
      const container = await engine.run(['sleep', '1000']);
      for (const stdin of ['', 'typed\n', '\n', 'P', 'GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n']) {
        const id = await exec(container, 'cat; echo over');

        const session = await sendAndEnd(`POST /exec/${id}/start`, { headers, body: '{}', stdin });
        await session.ended;

        const bytes = session.bytes.toString('latin1');
        assert.ok(bytes.endsWith('over\n') && bytes.includes(stdin), bytes);
      }
    });

    test(`the body of an exec may come in pieces, with stdin behind it, ${how}`, async () => {
      const container = await engine.run(['sleep', '1000']);
      const chunked = 'Transfer-Encoding: chunked\r\n\r\n';
      for (const pieces of [
        ['Content-Length: 2\r\n\r\n{', '}typed\n'],
        ['Content-Length: 2\r\n\r\n', '{}', 'typed\n'],
        [`${chunked}2\r\n{}\r\n0\r\n\r\ntyped\n`],
        [`${chunked}2\r\n{`, '}\r\n0\r\n\r', '\nty', 'ped\n'],
      ]) {
        const id = await exec(container, 'cat; echo over');
        const socket = await open();
        const session = new Session(socket);
        const head = [`POST /exec/${id}/start HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers];

        socket.setNoDelay(true).write(`${head.join('\r\n')}\r\n`);
        for (const piece of pieces) {
          await engine.get('/_ping'); // behind what was sent
          socket.write(piece);
        }
        socket.end();
        await session.ended;

        assert.match(session.text, headers.length > 0 ? /^HTTP\/1\.1 101 / : /^HTTP\/1\.1 200 /);
        assert.ok(session.bytes.includes('typed\n') && session.bytes.includes('over\n'), session.text);
      }
    });
  }

  test('a wait answers with the true exit code', async () => {
    const id = await engine.run(['sh', '-c', 'read line; exit 7'], withStdin);

    const session = await sendAndEnd(`POST /containers/${id}/wait`);
    const stdin = await engine.hijack(`/containers/${id}/attach?stream=1&stdin=1`);
    stdin.socket.end('\n');
    await session.ended;

    assert.match(session.text, /\{"StatusCode":7\}/);
  });

  test('a saved image is whole', async () => {
    const whole = await engine.get('/images/busybox/get');

    // Often: the kernel tells of the client with signals, which interrupt the daemon in the midst of anything.
    for (let i = 0; i < 20; i += 1) {
      const session = await sendAndEnd('GET /images/busybox/get');
      await session.ended;

      assert.ok(session.bytes.length > whole.raw.length, `${session.bytes.length} of ${whole.raw.length}`);
      assert.equal(session.bytes.toString('latin1').slice(-5), '0\r\n\r\n');
    }
  });

  test('events and a followed log go on', async () => {
    const id = await engine.run(['sh', '-c', 'echo first; read line; echo second'], withStdin, 'followed');
    const events = await sendAndEnd('GET /events');
    const log = await sendAndEnd('GET /containers/followed/logs?stdout=1&follow=1');
    await log.saw('first');

    const stdin = await engine.hijack(`/containers/${id}/attach?stream=1&stdin=1`);
    stdin.socket.end('\n');
    await log.ended;
    await events.saw('"die"');

    assert.match(log.text, /second/);
    events.socket.destroy();
  });
});
