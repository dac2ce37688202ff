import { readdirSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const CLIENTS = 40;
/** Leaves at once; says that it will send no more, and leaves later; the same, with a reset. */
type Leaving = 'close' | 'half-close, close' | 'half-close, reset';

/**
 * Clients that ask, wait for the first byte where there is one to come, and leave without a word. A program, because it
 * has to run in the daemon's network namespace.
 */
const ASK_AND_LEAVE = `
const [target, request, answers, leaving] = JSON.parse(process.argv[1]);
const { once } = require('node:events');
async function client() {
  const socket = require('node:net').connect({ ...target, allowHalfOpen: true });
  await once(socket, 'connect');
  const sent = new Promise((done) => socket.write(request + ' HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n', done));
  await (answers ? once(socket, 'data') : sent);
  if (leaving !== 'close') {
    await new Promise((done) => socket.end(done));
    await new Promise((done) => setTimeout(done, 50));
  }
  if (leaving.endsWith('reset')) socket.resetAndDestroy();
  else socket.destroy();
}
Promise.all(Array.from({ length: ${CLIENTS} }, client));
`;

const REQUESTS = [
  ['of the events', 'GET /events', true],
  ['of a silent log', 'GET /containers/quiet/logs?stdout=1&follow=1', true],
  ['of a silent container', 'POST /containers/quiet/attach?stream=1&stdout=1', true],
  ['of a container that is not started', 'POST /containers/created/attach?stream=1&stdout=1', true],
  ['of the end of a container', 'POST /containers/quiet/wait', false],
] as const;

suite('followers are gone when their clients are', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--host=tcp://127.0.0.1:2375'] });
    const alone = { HostConfig: { NetworkMode: 'none' } };
    await engine.run(['sleep', '1000'], alone, 'quiet');
    await engine.create(['true'], alone, 'created');
    // How long the other side's kernel remembers a connection that it has closed, and we have not.
    await engine.onHost(['sh', '-c', 'echo 1 > /proc/sys/net/ipv4/tcp_fin_timeout']);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function followersGo(request: string, answers: boolean, leaving: Leaving, target: object): Promise<void> {
    const openFiles = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
    await engine.get('/_ping');
    const before = openFiles();

    const what = JSON.stringify([target, request, answers, leaving]);
    await engine.onHost([process.execPath, '-e', ASK_AND_LEAVE, what]);
    await engine.get('/_ping'); // behind all of them

    while (openFiles() > before + CLIENTS / 4) await setTimeout(20);
  }

  for (const [what, request, answers] of REQUESTS) {
    for (const leaving of ['close', 'half-close, close'] as const) {
      test(`${what}, on the unix socket: ${leaving}`, async () => {
        await followersGo(request, answers, leaving, { path: engine.socketPath });
      });
    }
    test(`${what}, over TCP: half-close, reset`, async () => {
      await followersGo(request, answers, 'half-close, reset', { host: '127.0.0.1', port: 2375 });
    });
  }

  test('of the events, over TCP: a close, which is noticed by the probes for living clients', async () => {
    await followersGo('GET /events', true, 'close', { host: '127.0.0.1', port: 2375 });
  });
});
