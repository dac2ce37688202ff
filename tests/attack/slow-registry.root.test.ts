import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MAX_GROWTH_MB = 64;
const [HEADS, BODIES, TOKENS_HEAD, TOKENS_BODY] = [5010, 5011, 5012, 5013];

/** Registries and token servers: one byte a moment of a head or a body. */
const SERVERS = `
  const { createServer } = require('node:net');
  const OK = 'HTTP/1.1 200 OK\\r\\n';
  const EMPTY = OK + 'Content-Length: 0\\r\\n\\r\\n';
  const wanted = (port) => 'HTTP/1.1 401 No\\r\\nContent-Length: 0\\r\\n' +
    'WWW-Authenticate: Bearer realm="http://127.0.0.1:' + port + '/token",service="x"\\r\\n\\r\\n';
  const trickle = (socket, first) => {
    socket.write(first);
    const timer = setInterval(() => socket.write('a'), 50);
    socket.once('close', () => clearInterval(timer));
  };
  const serve = (port, answer) => createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => answer(socket, /^GET \\/v2\\/ /.test(String(data))));
  }).listen(port, '127.0.0.1', () => console.log(port));
  const slowBody = (socket) => trickle(socket, OK + 'Content-Length: 100000\\r\\n\\r\\n');
  serve(${HEADS}, (socket) => trickle(socket, OK + 'X-Long: '));
  serve(${BODIES}, (socket, isPing) => isPing ? socket.write(EMPTY) : slowBody(socket));
  serve(${TOKENS_HEAD}, (socket) => socket.write(wanted(${HEADS})));
  serve(${TOKENS_BODY}, (socket) => socket.write(wanted(${BODIES})));
`;

suite('a registry, or its token server, that answers byte by byte', { concurrency: false }, () => {
  let engine: TestEngine;
  let servers: ChildProcess;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'], version: '1.41' });
    const netns = `--net=${join(engine.directory, 'netns')}`;
    servers = spawn('nsenter', [netns, process.execPath, '-e', SERVERS], { stdio: ['ignore', 'pipe', 'inherit'] });
    let listening = '';
    while (listening.split('\n').length <= 4) listening += String((await once(servers.stdout!, 'data'))[0]);
    for (const port of [HEADS, TOKENS_HEAD, TOKENS_BODY])
      assert.equal((await engine.post(`/images/busybox/tag?repo=127.0.0.1:${port}/x&tag=1`)).status, 201);
  });
  after(async () => {
    servers.kill();
    await once(servers, 'exit');
    await engine[Symbol.asyncDispose]();
  });

  /** Connections to the slow servers; those of the registry before them end when they are idle. */
  const connections = async (): Promise<number> => {
    const filter = `( dport = :${HEADS} or dport = :${BODIES} )`;
    return (await engine.onHost(['ss', '-Htn', 'state', 'established', filter])).split('\n').length - 1;
  };

  const credentials = { username: 'alice', password: 'secret' };
  const authorization = { 'X-Registry-Auth': Buffer.from(JSON.stringify(credentials)).toString('base64') };
  const requests: readonly (readonly [
    what: string,
    ports: number[],
    send: (port: number, signal: AbortSignal) => Promise<unknown>,
  ])[] = [
    [
      'a pull',
      [HEADS, BODIES, TOKENS_HEAD, TOKENS_BODY],
      async (port, signal) =>
        await engine.post(`/images/create?fromImage=127.0.0.1:${port}/x&tag=1`, undefined, { signal }),
    ],
    [
      'a push',
      [HEADS, TOKENS_HEAD, TOKENS_BODY],
      async (port, signal) =>
        await engine.post(`/images/127.0.0.1:${port}/x/push?tag=1`, undefined, { signal, headers: authorization }),
    ],
    [
      'a login',
      [HEADS, TOKENS_HEAD, TOKENS_BODY],
      async (port, signal) =>
        await engine.post('/auth', { ...credentials, serveraddress: `127.0.0.1:${port}` }, { signal }),
    ],
    [
      'a question for an image',
      [HEADS, BODIES, TOKENS_HEAD, TOKENS_BODY],
      async (port, signal) => await engine.get(`/distribution/127.0.0.1:${port}/x:1/json`, { signal }),
    ],
  ];
  for (const [what, ports, send] of requests) {
    test(`${what} ends when its client leaves, and others are answered meanwhile`, async () => {
      await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
        const leaving = new AbortController();
        const sent = ports.map(async (port) => await send(port, leaving.signal));
        while ((await connections()) < ports.length) await setTimeout(20);

        assert.equal((await engine.get('/images/json')).status, 200);
        leaving.abort();

        for (const outcome of await Promise.allSettled(sent)) assert.equal(outcome.status, 'rejected');
        while ((await connections()) > 0) await setTimeout(20);
      });
    });
  }
});
