import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';
import { Agent, WebSocket } from 'undici';

type Message = { message: string };

/** A browser's websocket on the engine's Unix socket: what came, and the end. */
class Client {
  readonly socket: WebSocket;
  readonly closed: Promise<unknown>;
  readonly pieces: (string | Buffer)[] = [];
  #check: () => void = () => undefined;

  constructor(engine: TestEngine, path: string, version = '1.24') {
    const dispatcher = new Agent({ connect: { socketPath: engine.socketPath } });
    this.socket = new WebSocket(`ws://engine/v${version}${path}`, { dispatcher });
    this.socket.binaryType = 'arraybuffer';
    this.socket.addEventListener('message', ({ data }) => {
      this.pieces.push(typeof data === 'string' ? data : Buffer.from(data as ArrayBuffer));
      this.#check();
    });
    this.closed = once(this.socket, 'close').then(async () => await dispatcher.close());
  }

  get text(): string {
    return this.pieces.map(String).join('');
  }

  async saw(text: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#check = () => {
      if (this.text.includes(text)) resolve();
    };
    this.#check();
    await promise;
  }
}

suite('attach by websocket', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--max-api-version=1.28'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('a terminal is talked to in both directions', async () => {
    const id = await engine.run(['sh', '-c', 'read x; echo "got $x"'], { Tty: true, OpenStdin: true });
    const client = new Client(engine, `/containers/${id}/attach/ws?stream=1&stdin=1&stdout=1`);
    await once(client.socket, 'open');

    client.socket.send('größe\r');
    await client.saw('got größe\r\n');
    await client.closed;

    assert.ok(client.pieces.every((piece) => typeof piece === 'string'));
  });

  test('messages are text below 1.28, then binary', async () => {
    const kinds: string[][] = [];
    for (const version of ['1.27', '1.28']) {
      const id = await engine.create(['echo', 'größe'], { Tty: true });
      const client = new Client(engine, `/containers/${id}/attach/ws?logs=1&stream=1&stdout=1`, version);
      await once(client.socket, 'open');
      await engine.post(`/containers/${id}/start`);
      await client.closed;
      assert.equal(client.text, 'größe\r\n');
      kinds.push([...new Set(client.pieces.map((piece) => typeof piece))]);
    }

    assert.deepEqual(kinds, [['string'], ['object']]);
  });

  test('without a terminal the bytes come without frames', async () => {
    const id = await engine.create(['sh', '-c', 'echo out; echo err >&2']);
    const client = new Client(engine, `/containers/${id}/attach/ws?logs=1&stream=1&stdout=1&stderr=1`);
    await once(client.socket, 'open');

    await engine.post(`/containers/${id}/start`);
    await client.closed;

    assert.equal(client.text, 'out\nerr\n');
  });

  test('bytes that are not text are sent as binary', async () => {
    const id = await engine.create(['printf', String.raw`\377\376`], { Tty: true });
    const client = new Client(engine, `/containers/${id}/attach/ws?stream=1&stdout=1`);
    await once(client.socket, 'open');

    await engine.post(`/containers/${id}/start`);
    await client.closed;

    assert.deepEqual(client.pieces, [Buffer.from([0xff, 0xfe])]);
  });

  test('an invalid request is refused before the switch', async () => {
    const id = await engine.create(['true']);

    const plain = await engine.get<Message>(`/containers/${id}/attach/ws`);
    const missing = await engine.get<Message>('/containers/nope/attach/ws');
    const keys = await engine.get<Message>(`/containers/${id}/attach/ws?detachKeys=invalid`);

    assert.deepEqual([plain.status, missing.status, keys.status], [400, 404, 400]);
    assert.match(plain.body.message, /websocket/);
  });
});
