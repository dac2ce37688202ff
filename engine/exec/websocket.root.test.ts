import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { Agent, WebSocket } from 'undici';

suite('GET /exec/{id}/ws', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  before(async () => {
    engine = await TestEngine.start({ version: '1.51' });
    id = await engine.run(['sleep', '1000']);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const createExec = async (command: readonly string[], tty: boolean): Promise<string> => {
    const streams = { AttachStdin: true, AttachStdout: true, AttachStderr: true };
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, {
      Cmd: command,
      Tty: tty,
      ...streams,
    });
    return body.Id;
  };
  const connect = async (exec: string): Promise<{ socket: WebSocket; text: Promise<string> }> => {
    const dispatcher = new Agent({ connect: { socketPath: engine.socketPath } });
    const socket = new WebSocket(`ws://engine/v1.51/exec/${exec}/ws`, { dispatcher });
    socket.binaryType = 'arraybuffer';
    const pieces: Buffer[] = [];
    socket.addEventListener('message', ({ data }) => pieces.push(Buffer.from(data as ArrayBuffer)));
    const text = once(socket, 'close').then(async () => {
      await dispatcher.close();
      return Buffer.concat(pieces).toString();
    });
    await Promise.race([once(socket, 'open'), text]);
    return { socket, text };
  };

  test('a terminal is talked to in both directions, and its exit code is stored', async () => {
    const exec = await createExec(['sh', '-c', 'read x; echo "got $x"; exit 7'], true);
    const { socket, text } = await connect(exec);

    socket.send('größe\r');

    assert.match(await text, /got größe\r\n$/);
    assert.equal((await engine.get<{ ExitCode: number }>(`/exec/${exec}/json`)).body.ExitCode, 7);
  });

  const exitCodeOf = async (exec: string): Promise<number> =>
    await eventually('the exec ends', async () => {
      const { body } = await engine.get<{ Running: boolean; ExitCode: number | null }>(`/exec/${exec}/json`);
      return body.Running ? undefined : (body.ExitCode ?? undefined);
    });

  test('a closed connection ends its shell', async () => {
    const exec = await createExec(['sh', '-c', 'echo ready; sleep 1000'], true);
    const { socket, text } = await connect(exec);
    await once(socket, 'message');

    socket.close();

    await text;
    assert.equal(await exitCodeOf(exec), 129);
  });

  test('a shell that ignores a closed connection is killed', async () => {
    const exec = await createExec(['sh', '-c', 'trap "" HUP; echo ready; sleep 1000'], true);
    const { socket, text } = await connect(exec);
    await once(socket, 'message');

    socket.close();

    await text;
    assert.equal(await exitCodeOf(exec), 137);
  });

  test('without a terminal the bytes come without frames', async () => {
    const { text } = await connect(await createExec(['echo', 'plain'], false));

    assert.equal(await text, 'plain\n');
  });

  test('an unknown exec, one that has run, and a request without a handshake are refused before the connection changes', async () => {
    const exec = await createExec(['true'], true);
    await (
      await connect(exec)
    ).text;
    const handshake = {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      },
    };

    const statuses = [
      (await engine.get('/exec/nope/ws', handshake)).status,
      (await engine.get(`/exec/${exec}/ws`, handshake)).status,
      (await engine.get(`/exec/${await createExec(['true'], true)}/ws`)).status,
    ];

    assert.deepEqual(statuses, [404, 409, 400]);
  });
});
