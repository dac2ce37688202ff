import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposableSync, readdirSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Asked = 'AuthZPlugin.AuthZReq' | 'AuthZPlugin.AuthZRes';
type Answer = (socket: Socket) => void;

const HEAD = 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n';
const MEGABYTE = 'x'.repeat(1024 * 1024);
const says =
  (body: string): Answer =>
  (socket) =>
    socket.end(HEAD + body);
const ALLOW = says('{"Allow":true}');

const rows: readonly (readonly [what: string, answer: Answer, status: number, message: RegExp])[] = [
  ['allows', ALLOW, 200, /^$/],
  ['allows in lower case, as Go reads it', says('{"allow":true}'), 200, /^$/],
  ['allows with a long message', says(`{"Allow":true,"Msg":"${MEGABYTE.repeat(10)}"}`), 200, /^$/],
  ['refuses with a long message', says(`{"Allow":false,"Msg":"${MEGABYTE.repeat(10)}"}`), 403, /judge: x{1000}…$/],
  ['answers nothing', says(''), 403, /^authorization denied by plugin judge: $/],
  ['answers null', says('null'), 403, /^authorization denied by plugin judge: $/],
  ['answers with null', says('{"Allow":null,"Msg":null}'), 403, /^authorization denied by plugin judge: $/],
  ['answers with a text', says('{"Allow":"true"}'), 500, /answered against its protocol/],
  ['answers a list', says('[{"Allow":true}]'), 500, /answered against its protocol/],
  ['answers with an error as well', says('{"Allow":true,"Err":"broken"}'), 500, /failed with error: broken$/],
  ['answers 17 MB', says(`{"Allow":true,"Msg":"${MEGABYTE.repeat(17)}"}`), 500, /more than 16777216 bytes/],
  ['answers 10 MB of brackets', says('['.repeat(1e7)), 500, /answered against its protocol/],
  [
    'redirects',
    (socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n'),
    500,
    /AuthZPlugin\.AuthZRe[qs]: status 302$/,
  ],
  ['closes the connection', (socket) => socket.destroy(), 500, /the connection broke off$/],
  ['speaks something else', (socket) => socket.end('220 mail ready\r\n'), 500, /it speaks no HTTP$/],
];

suite('a hostile authorization plugin', { concurrency: false }, () => {
  const place = mkdtempDisposableSync(join(tmpdir(), 'gantry-authorization-'));
  const answers: Record<Asked, Answer> = { 'AuthZPlugin.AuthZReq': ALLOW, 'AuthZPlugin.AuthZRes': ALLOW };
  const open = new Set<Socket>();
  let plugin: Server;
  let engine: TestEngine;

  before(async () => {
    plugin = createServer((socket) => {
      open.add(socket.once('close', () => open.delete(socket)));
      socket.on('error', () => socket.destroy()).once('data', (head) => answer(socket, String(head)));
    }).listen(join(place.path, 'judge.sock'));
    await once(plugin, 'listening');
    engine = await TestEngine.start({
      image: false,
      flags: ['--bridge=none', `--plugin-folder=${place.path}`, '--authorization-plugin=judge'],
    });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    plugin.close();
    place.remove();
  });

  function answer(socket: Socket, head: string): void {
    const [, method = ''] = /^POST \/(\S+)/.exec(head) ?? [];
    if (method === 'Plugin.Activate') says('{"Implements":["authz"]}')(socket);
    else answers[method as Asked](socket);
  }

  for (const asked of ['AuthZPlugin.AuthZReq', 'AuthZPlugin.AuthZRes'] as const) {
    for (const [what, given, status, message] of rows) {
      test(`${asked}: one that ${what} is answered with ${status}`, async () => {
        answers[asked] = given;

        const { status: got, body } = await engine.get<{ message?: string }>('/containers/json');

        answers[asked] = ALLOW;
        assert.equal(got, status);
        assert.match(body.message ?? '', message);
        assert.equal((await engine.get('/containers/json')).status, 200);
      });
    }

    test(`${asked}: one that is silent holds up no other request, and is left when the client leaves`, async () => {
      const silent: Socket[] = [];
      const files = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
      const before = files();
      const leaving = new AbortController();
      answers[asked] = (socket) => void silent.push(socket);
      const left = Array.from({ length: 20 }, async () => await engine.get('/info', { signal: leaving.signal }));
      await eventually('all are asked about', () => silent.length === 20);

      answers[asked] = ALLOW;
      assert.equal((await engine.get('/containers/json')).status, 200);
      leaving.abort();

      for (const outcome of await Promise.allSettled(left)) assert.equal(outcome.status, 'rejected');
      await eventually('the calls have ended', () => silent.every((socket) => !open.has(socket)));
      await eventually('no file is left open', () => files() < before + 20);
    });
  }

  test('one that is gone refuses, and a client that leaves waits no longer', async () => {
    plugin.close();
    const leaving = new AbortController();
    const left = engine.get('/info', { signal: leaving.signal });
    left.catch(() => undefined);
    leaving.abort();
    await assert.rejects(left);

    plugin.listen(join(place.path, 'judge.sock'));
    await once(plugin, 'listening');
    assert.equal((await engine.get('/containers/json')).status, 200);
  });
});
