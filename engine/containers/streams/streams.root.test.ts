import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { FrameDecoder } from '../../http/streams/frames.ts';

type Message = { message: string };

suite('streams of containers', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function attach(id: string, query: string): Promise<Session> {
    return new Session((await engine.hijack(`/containers/${id}/attach?${query}`)).socket);
  }

  async function start(id: string): Promise<void> {
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
  }

  async function actionsOf(id: string): Promise<string[]> {
    const now = Math.floor(Date.now() / 1000) + 1;
    const filters = JSON.stringify({ container: [id] });
    const { raw } = await engine.get(`/events?since=1&until=${now}&filters=${encodeURIComponent(filters)}`);
    return raw
      .toString()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => (JSON.parse(line) as { Action: string }).Action);
  }

  test('an attach before the start gets everything, also without a log', async () => {
    for (const Type of ['json-file', 'none']) {
      const id = await engine.create(['sh', '-c', 'echo out; echo err >&2; exit 3'], {
        HostConfig: { LogConfig: { Type } },
      });
      const session = await attach(id, 'stream=1&stdout=1&stderr=1');

      await start(id);
      await session.ended;

      assert.deepEqual(session.output, { stdout: 'out\n', stderr: 'err\n' });
      const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
      assert.deepEqual([body.State.Status, body.State.ExitCode], ['exited', 3]);
    }
  });

  test('an attach of only one stream gets only that one', async () => {
    const id = await engine.create(['sh', '-c', 'echo out; echo err >&2']);
    const session = await attach(id, 'stream=1&stderr=1');

    await start(id);
    await session.ended;

    assert.deepEqual(session.output, { stdout: '', stderr: 'err\n' });
  });

  test('logs and stream together repeat nothing and lose nothing', async () => {
    const id = await engine.run(['sh', '-c', 'echo first; read line; echo $line'], {
      OpenStdin: true,
      StdinOnce: true,
    });
    const early = await attach(id, 'logs=1&stream=1&stdout=1');
    await early.saw('first');
    const session = await attach(id, 'logs=1&stream=1&stdin=1&stdout=1&stderr=1');
    await session.saw('first');

    session.type('second\n');
    await session.ended;

    assert.deepEqual(session.output, { stdout: 'first\nsecond\n', stderr: '' });
    await early.ended;
    assert.deepEqual(early.output, { stdout: 'first\nsecond\n', stderr: '' });
  });

  test('of a stopped container the log is sent, and the next run follows', async () => {
    const id = await engine.run(['sh', '-c', 'echo run']);
    await engine.wait(id);
    const session = await attach(id, 'logs=1&stream=1&stdout=1');
    await session.saw('run');

    await start(id);
    await session.ended;

    assert.deepEqual(session.output, { stdout: 'run\nrun\n', stderr: '' });
  });

  test('a run that is over before the log was sent ends the stream as well', async () => {
    const firstRun = 'test -e /was || { touch /was; yes $(seq 200) | head -c 2000000; }';
    const id = await engine.run(['sh', '-c', firstRun]);
    await engine.wait(id);
    const { socket } = await engine.hijack(`/containers/${id}/attach?logs=1&stream=1&stdout=1`);
    await start(id);
    await engine.wait(id);

    const session = new Session(socket); // reading begins only now
    await session.ended;

    assert.equal(session.output.stdout.length, 2_000_000);
  });

  test('logs alone end at once, also while the container runs', async () => {
    const id = await engine.run(['sh', '-c', 'echo here; sleep 100']);
    const log = await attach(id, 'logs=1&stream=1&stdout=1');
    await log.saw('here');

    const session = await attach(id, 'logs=1&stdout=1');
    await session.ended;

    assert.deepEqual(session.output, { stdout: 'here\n', stderr: '' });
    log.socket.destroy();
  });

  test('a stream of nothing ends at once', async () => {
    const id = await engine.run(['sleep', '1000']);

    await (
      await attach(id, 'stream=1')
    ).ended;
    await (
      await attach(id, '')
    ).ended;
  });

  test('the end of stdin ends stdin only', async () => {
    const id = await engine.create(['sh', '-c', 'cat; echo after'], {
      OpenStdin: true,
      StdinOnce: true,
      AttachStdin: true,
    });
    const session = await attach(id, 'stream=1&stdin=1&stdout=1&stderr=1');
    await start(id);

    session.socket.end('typed');
    await session.ended;

    assert.deepEqual(session.output, { stdout: 'typedafter\n', stderr: '' });
  });

  test('head and event of an attach come when the shim has the client, so that no later line is missed', async () => {
    const id = await engine.run(['cat'], { OpenStdin: true });
    const writer = await attach(id, 'stream=1&stdin=1');
    const emitted = (await actionsOf(id)).length;
    const shim = Number(await engine.onHost(['pgrep', '-nf', `gantry-shim --id ${id}`]));
    process.kill(shim, 'SIGSTOP');
    const socket = connect(engine.socketPath);
    await once(socket, 'connect');
    const client = new Session(socket);

    socket.write(`POST /v1.24/containers/${id}/attach?stream=1&stdout=1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    for (let i = 0; i < 20; i += 1) await engine.get('/_ping'); // behind the request
    const early = { text: client.text, events: (await actionsOf(id)).slice(emitted) };
    process.kill(shim, 'SIGCONT');
    await client.saw('\r\n\r\n');
    writer.type('line;\n');
    await client.saw('line;\n');

    assert.deepEqual(early, { text: '', events: [] });
    assert.deepEqual((await actionsOf(id)).slice(emitted), ['attach']);
    socket.destroy();
    writer.socket.destroy();
  });

  test('a client that was told to be attached misses nothing', async () => {
    const id = await engine.run(['cat'], { OpenStdin: true });
    const writer = await attach(id, 'stream=1&stdin=1');

    for (let i = 0; i < 60; i += 1) {
      const client = await attach(id, 'stream=1&stdout=1');
      writer.type(`line ${i};\n`);
      await client.saw(`line ${i};\n`);
      client.socket.destroy();
    }

    writer.socket.destroy();
  });

  test('stdin may come in one packet with the request', async () => {
    const id = await engine.run(['sh', '-c', 'cat; echo over'], { OpenStdin: true, StdinOnce: true });
    const socket = connect({ path: engine.socketPath, allowHalfOpen: true });
    await once(socket, 'connect');
    const session = new Session(socket);

    socket.end(
      `POST /v1.24/containers/${id}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nhello\n`,
    );
    await session.ended;

    assert.match(session.text, /^HTTP\/1\.1 200 OK\r\n/);
    assert.doesNotMatch(session.text, /transfer-encoding/i);
    assert.match(session.text, /application\/vnd\.engine\.raw-stream/);
    assert.ok(session.bytes.includes('hello\n') && session.bytes.includes('over\n'));
  });

  test('a terminal is raw, and its detach keys leave the container running', async () => {
    const id = await engine.run(['cat'], { OpenStdin: true, Tty: true });
    const session = await attach(id, 'stream=1&stdin=1&stdout=1&detachKeys=ctrl-a,x');
    session.type('hello\r');
    await session.saw('hello\r\nhello\r\n');

    session.type('\u0001');
    session.type('y\r');
    await session.saw('y\r\n');
    session.type('\u0001x');
    await session.ended;

    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
    assert.equal(body.State.Running, true);
    assert.ok((await actionsOf(id)).includes('detach'));
  });

  test('a client that leaves does not disturb the others', async () => {
    const id = await engine.run(['sh', '-c', 'read a; echo $a'], { OpenStdin: true });
    const leaving = await attach(id, 'stream=1&stdin=1&stdout=1');
    const staying = await attach(id, 'stream=1&stdin=1&stdout=1');

    leaving.socket.destroy();
    staying.type('x\n');
    await staying.ended;

    assert.deepEqual(staying.output, { stdout: 'x\n', stderr: '' });
  });

  test('an attach is refused as JSON before the connection is taken over', async () => {
    const paused = await engine.run(['sleep', '1000']);
    await engine.post(`/containers/${paused}/pause`);
    const cases: [string, number][] = [
      [`/containers/nope/attach?stream=1`, 404],
      [`/containers/${paused}/attach?stream=1&stdout=1`, 409],
      [`/containers/${paused}/attach?stream=1&detachKeys=invalid`, 400],
    ];
    for (const [path, status] of cases) {
      const answer = await engine.post<Message>(path);

      assert.equal(answer.status, status, path);
      assert.equal(typeof answer.body.message, 'string');
    }
    await engine.post(`/containers/${paused}/unpause`);
  });

  test('an attach to a start that fails ends', async () => {
    const id = await engine.create(['nosuch']);
    const session = await attach(id, 'stream=1&stdout=1&stderr=1');

    const answer = await engine.post<Message>(`/containers/${id}/start`);
    await session.ended;

    assert.equal(answer.status, 500);
    assert.match(answer.body.message, /executable file not found/);
    assert.equal(session.bytes.length, 0);
  });

  test('an attach and a wait for a removed container end', async () => {
    const id = await engine.create(['true']);
    const session = await attach(id, 'stream=1&stdout=1');
    const running = await engine.run(['sleep', '1000']);
    const waiting = engine.wait(running);

    await engine.delete(`/containers/${id}`);
    await engine.delete(`/containers/${running}?force=1`);

    await session.ended;
    assert.equal(await waiting, 137);
  });

  test('streams and wait end with each run of a restart policy', async () => {
    const policy = { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 2 } };
    const id = await engine.create(['sh', '-c', 'echo run; exit 5'], { HostConfig: policy });
    const session = await attach(id, 'stream=1&stdout=1');
    await start(id);
    const code = await engine.wait(id);
    await session.ended;

    assert.equal(code, 5);
    assert.deepEqual(session.output, { stdout: 'run\n', stderr: '' });
  });

  test('a wait for a stopped container answers at once', async () => {
    const created = await engine.create(['true']);
    const exited = await engine.run(['sh', '-c', 'exit 7']);
    await engine.wait(exited);

    assert.equal(await engine.wait(created), 0);
    assert.equal(await engine.wait(exited), 7);
    assert.equal((await engine.post('/containers/nope/wait')).status, 404);
  });

  test('the log is read with its parameters', async (t) => {
    const id = await engine.run(['sh', '-c', 'echo one; sleep 1; echo two >&2; sleep 1; echo -n three']);
    await engine.wait(id);
    const read = async (query: string): Promise<{ status: number; text: string }> => {
      const { status, raw } = await engine.get(`/containers/${id}/logs?${query}`);
      const texts: string[] = [];
      if (status === 200) new FrameDecoder((_type, payload) => texts.push(`|${payload.toString()}`)).push(raw);
      return { status, text: texts.join('') };
    };
    const cases: [string, string][] = [
      ['stdout=1&stderr=1', '|one\n|two\n|three'],
      ['stdout=1&stderr=0', '|one\n|three'],
      ['stdout=true&stderr=True&tail=2', '|two\n|three'],
      ['stdout=1&stderr=1&tail=abc', '|one\n|two\n|three'],
      ['stdout=1&stderr=1&tail=-1', '|one\n|two\n|three'],
      ['stdout=1&tail=0', ''],
      ['stdout=1&since=', '|one\n|three'],
      ['stdout=1&since=0', '|one\n|three'],
      ['stdout=1&since=-1', '|one\n|three'],
      ['stdout=1&since=1.5', '|one\n|three'],
      ['stdout=1&since=4000000000', ''],
      ['stdout=1&since=2100-01-01T00:00:00%2B01:00', ''],
      ['stdout=1&until=1', ''],
      ['stdout=1&follow=1', '|one\n|three'],
    ];
    for (const [query, expected] of cases) {
      await t.test(query, async () => {
        assert.deepEqual(await read(query), { status: 200, text: expected });
      });
    }
    for (const query of ['', 'follow=1', 'stdout=1&since=abc', 'stdout=1&until=tomorrow']) {
      await t.test(`${query} is refused`, async () => {
        assert.equal((await read(query)).status, 400);
      });
    }
    await t.test('timestamps', async () => {
      const { text } = await read('stdout=1&timestamps=1&tail=1');
      assert.match(text, /^\|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z three$/);
    });
  });

  test('details are the labels and variables that the log options choose', async () => {
    const LogConfig = { Type: 'json-file', Config: { labels: 'who,missing', env: 'FOO' } };
    const body = { Labels: { who: 'me & you' }, Env: ['FOO=bar'], HostConfig: { LogConfig } };
    const id = await engine.run(['echo', 'x'], body);
    await engine.wait(id);

    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1&details=1`);

    assert.equal(raw.subarray(8).toString(), 'FOO=bar,who=me+%26+you x\n');
    const { body: inspect } = await engine.get<{ LogPath: string }>(`/containers/${id}/json`);
    assert.match(
      readFileSync(inspect.LogPath, 'utf8'),
      /^\{"log":"x\\n","stream":"stdout","attrs":\{"FOO":"bar","who":"me \\u0026 you"\},"time":"[^"]+"\}\n$/,
    );
  });

  test('the log of a terminal is raw', async () => {
    const id = await engine.run(['echo', 'x'], { Tty: true });
    await engine.wait(id);

    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1`);

    assert.equal(raw.toString(), 'x\r\n');
  });

  test('a log that cannot be read is refused, one that was never written is empty', async () => {
    const unreadable = await engine.create(['true'], { HostConfig: { LogConfig: { Type: 'none' } } });
    const unwritten = await engine.create(['true']);

    const refused = await engine.get<Message>(`/containers/${unreadable}/logs?stdout=1`);
    const empty = await engine.get(`/containers/${unwritten}/logs?stdout=1&follow=1`);

    assert.equal(refused.status, 500);
    assert.match(refused.body.message, /does not support reading/);
    assert.deepEqual([empty.status, empty.raw.length], [200, 0]);
  });

  test('a short log is answered in one piece, from its head to its end', async () => {
    const id = await engine.run(['seq', '100']);
    await engine.wait(id);
    const socket = connect(engine.socketPath);
    socket.write(`GET /v1.24/containers/${id}/logs?stdout=1&tail=100 HTTP/1.1\r\nHost: x\r\n\r\n`);

    const [piece] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();

    assert.match(piece.toString(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*100\n\r\n0\r\n\r\n$/);
  });

  test('a log that fails to be read closes its connection', { timeout: 60_000 }, async () => {
    const id = await engine.run(['true']);
    await engine.wait(id);
    const { body } = await engine.get<{ LogPath: string }>(`/containers/${id}/json`);
    rmSync(body.LogPath);
    mkdirSync(body.LogPath);

    await assert.rejects(async () => await engine.get(`/containers/${id}/logs?stdout=1`));
  });

  test('a log is upgraded when the client asks for it', async () => {
    const id = await engine.run(['echo', 'x']);
    await engine.wait(id);
    const socket = connect(engine.socketPath);
    await once(socket, 'connect');
    const session = new Session(socket);

    socket.write(
      `GET /v1.24/containers/${id}/logs?stdout=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`,
    );
    await session.ended;

    assert.match(session.text, /^HTTP\/1\.1 101 UPGRADED\r\n[\s\S]*Upgrade: tcp/);
    assert.match(session.text, /x\n$/);
  });

  test('a followed log gets the last line before it ends, and then inspect agrees', async () => {
    const id = await engine.run(['sh', '-c', 'for i in $(seq 1 3000); do echo line $i; done; exit 9']);

    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1&follow=1`);
    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);

    assert.equal(raw.toString().match(/line \d+\n/g)?.length, 3000);
    assert.equal(body.State.ExitCode, 9);
  });

  test('a follow that its client leaves is over', async () => {
    const id = await engine.run(['sh', '-c', 'echo x; sleep 100']);
    const stream = await engine.stream('GET', `/containers/${id}/logs?stdout=1&follow=1`);
    await once(stream, 'data');

    stream.destroy();

    assert.equal((await engine.get(`/containers/${id}/json`)).status, 200);
  });

  test('rotated logs are read in one piece', async () => {
    const Config = { 'max-size': '10k', 'max-file': '5' };
    const id = await engine.run(['sh', '-c', 'for i in $(seq 1 300); do echo line $i; done'], {
      HostConfig: { LogConfig: { Type: 'json-file', Config } },
    });
    await engine.wait(id);

    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1`);

    const numbers = raw.toString().match(/line \d+\n/g) ?? [];
    assert.equal(numbers.length, 300);
  });

  test('bytes that are no text come back from the log as they were', async () => {
    const id = await engine.run(['printf', String.raw`\377\376\001\200x\n`]);
    await engine.wait(id);

    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1`);

    assert.deepEqual(raw.subarray(8), Buffer.from([0xff, 0xfe, 1, 0x80, 0x78, 0x0a]));
  });

  test('a resize reaches the terminal, and is refused where there is none to reach', async () => {
    const id = await engine.run(['sh', '-c', 'read x; stty size'], { OpenStdin: true, Tty: true });
    const created = await engine.create(['true'], { Tty: true });

    const resized = await engine.post(`/containers/${id}/resize?h=37&w=91`);
    const session = await attach(id, 'stream=1&stdin=1&stdout=1');
    session.type('\r');
    await session.saw('37 91');
    await session.ended;

    assert.equal(resized.status, 200);
    assert.ok((await actionsOf(id)).includes('resize'));
    assert.equal((await engine.post(`/containers/${created}/resize?h=1&w=1`)).status, 500);
    assert.equal((await engine.post(`/containers/nope/resize?h=1&w=1`)).status, 404);
    for (const query of ['h=1', 'h=x&w=1', 'h=-1&w=1', '']) {
      assert.equal((await engine.post(`/containers/${id}/resize?${query}`)).status, 400, query);
    }
  });
});
