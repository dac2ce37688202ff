import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { ANONYMOUS } from '../auth/credentials.ts';
import { RegistrySession } from '../connection/session.ts';
import { GrowingFile } from './growing-file.ts';
import { PushTarget } from './push-target.ts';

const content = Buffer.alloc(3_000_000, 'some bytes of a layer, ');
const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;

type Faults = {
  /** The first so many PATCHes are cut after a megabyte. */
  cuts: number;
  /** Answer to a question for the state of an upload. */
  state: 'told' | 'forgotten' | 'silent';
  refusal?: { status: number; headers: Record<string, string> };
};

/** A registry that keeps what came of a cut upload, as the specification wants it. */
class Uploads implements AsyncDisposable {
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));
  readonly seen: string[] = [];
  readonly done: Buffer[] = [];
  #faults: Faults;
  #bytes = Buffer.alloc(0);

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = '', headers } = request;
    const location = { location: '/v2/a/blobs/uploads/one?state=1', range: `0-${Math.max(0, this.#bytes.length - 1)}` };
    if (method !== 'GET' || request.url !== '/v2/')
      this.seen.push(`${method} ${headers['content-range'] ?? ''}`.trim());
    if (request.url === '/v2/') response.writeHead(200).end();
    else if (method === 'POST') {
      this.#bytes = Buffer.alloc(0);
      response.writeHead(202, location).end();
    } else if (method === 'GET') {
      const { state } = this.#faults;
      if (state === 'told') response.writeHead(204, location).end();
      else response.writeHead(state === 'forgotten' ? 404 : 204).end();
    } else if (method === 'PATCH') await this.#take(request, response);
    else {
      this.done.push(this.#bytes);
      response.writeHead(201).end();
    }
  }

  async #take(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { refusal } = this.#faults;
    if (refusal !== undefined) {
      delete this.#faults.refusal;
      request.resume();
      response.writeHead(refusal.status, refusal.headers).end();
      return;
    }
    const isCut = this.#faults.cuts > 0;
    const { socket } = request;
    if (isCut) this.#faults.cuts -= 1;
    let left = isCut ? 1_000_000 : Infinity;
    for await (const piece of request as AsyncIterable<Buffer>) {
      this.#bytes = Buffer.concat([this.#bytes, piece.subarray(0, left)]);
      left -= piece.length;
      if (left <= 0) break;
    }
    if (isCut) socket.destroy();
    else response.writeHead(202, { location: '/v2/a/blobs/uploads/one?state=2' }).end();
  }
}

suite('upload', { concurrency: false }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-upload-'));
  const file = join(folder, 'layer');
  before(() => writeFileSync(file, content));
  after(() => rmSync(folder, { recursive: true }));

  const config = { insecureRegistries: [], registryMirrors: [], registryCertificates: folder };
  /** Sends the file; what the registry saw, and the waits. */
  async function send(faults: Faults, growing = new GrowingFile(file, { digest, size: content.length })) {
    await using uploads = new Uploads(faults);
    const endpoint = { url: new URL(`http://${await uploads.listen()}/`), isVerified: false, isMirror: false };
    const signal = AbortSignal.timeout(300_000);
    using session = await RegistrySession.open({ config, clock: systemClock }, endpoint, ANONYMOUS, signal);
    const waits: number[] = [];
    const upload = { clock: systemClock, signal, onProgress: () => undefined, onRetry: (s: number) => waits.push(s) };
    let failure: unknown;
    try {
      await new PushTarget(session, 'a').upload(growing, upload);
    } catch (error) {
      failure = error;
    }
    const whole = uploads.done.map((bytes) => bytes.equals(content));
    return { seen: uploads.seen, whole, waits: waits.length, failure };
  }

  test('a file is sent in one go', async () => {
    assert.deepEqual(await send({ cuts: 0, state: 'told' }), {
      seen: ['POST', 'PATCH', 'PUT'],
      whole: [true],
      waits: 0,
      failure: undefined,
    });
  });

  test('a cut upload goes on where the registry has got to', async () => {
    const { seen, whole, waits, failure } = await send({ cuts: 2, state: 'told' });

    assert.deepEqual(
      [seen, whole, waits, failure],
      [['POST', 'PATCH', 'GET', 'PATCH 1000000-2999999', 'GET', 'PATCH 2000000-2999999', 'PUT'], [true], 2, undefined],
    );
  });

  for (const state of ['forgotten', 'silent'] as const) {
    test(`a cut upload begins anew (its state is ${state})`, async () => {
      const { seen, whole } = await send({ cuts: 1, state });

      assert.deepEqual([seen, whole], [['POST', 'PATCH', 'GET', 'POST', 'PATCH', 'PUT'], [true]]);
    });
  }

  test('a file is sent while it grows', async () => {
    const path = join(folder, 'growing');
    writeFileSync(path, '');
    const growing = new GrowingFile(path);
    const sent = send({ cuts: 1, state: 'told' }, growing);
    for (let at = 0; at < content.length; at += 100_000) {
      appendFileSync(path, content.subarray(at, at + 100_000));
      growing.grow(at + 100_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    growing.end({ digest, size: content.length });

    assert.deepEqual((await sent).whole, [true]);
  });

  test('a file that will never be whole ends the upload with the reason', async () => {
    const growing = new GrowingFile(file);
    const sent = send({ cuts: 0, state: 'told' }, growing);
    growing.grow(1_000_000);
    growing.fail(new Error('the disk is full'));

    const { failure, whole } = await sent;
    assert.deepEqual([(failure as Error).message, whole], ['the disk is full', []]);
  });

  test('a registry that is busy is asked again when it says; one that says tomorrow is not waited for', async () => {
    const soon = { cuts: 0, state: 'forgotten', refusal: { status: 503, headers: { 'retry-after': '1' } } } as const;
    const late = {
      cuts: 0,
      state: 'forgotten',
      refusal: { status: 429, headers: { 'retry-after': '86400' } },
    } as const;

    const [first, second] = await Promise.all([send({ ...soon }), send({ ...late })]);

    assert.deepEqual([first.whole, first.waits], [[true], 1]);
    assert.deepEqual([second.whole, (second.failure as Error).message], [[], 'toomanyrequests: too many requests']);
  });
});
