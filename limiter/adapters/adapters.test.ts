import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import Fastify from 'fastify';

import { RateLimiter } from '../limiter.ts';
import { limitRules } from '../rules.ts';
import type { Caller } from '../types.ts';
import { fastifyLimits } from './fastify.ts';
import { limitFetch } from './fetch.ts';
import { limitHttp } from './node-http.ts';

const caller: Caller = { kind: 'user', key: 'user:1', limit: 2, label: 'user ID 1' };
const tight = limitRules({ concurrent: { limit: 1, retrySeconds: 7 } });

async function serve(listener: RequestListener): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('node:http: answers carry the headers, and the third request of two is refused', async () => {
  const limiter = new RateLimiter();
  const endpoint = limiter.endpoint({ name: 'GET /' });
  await using server = await serve(
    limitHttp(limiter, { endpoint: () => endpoint, caller: () => caller }, (_, response) => response.end('hello')),
  );

  const first = await fetch(server.url);
  await fetch(server.url);
  const refused = await fetch(server.url);

  assert.equal(first.headers.get('x-ratelimit-remaining'), '1');
  assert.equal(await first.text(), 'hello');
  assert.equal(refused.status, 403);
  assert.equal(refused.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.match(((await refused.json()) as { message: string }).message, /^API rate limit exceeded for user ID 1\./);
});

test('node:http: a client that hangs up gives its place back', async () => {
  const limiter = new RateLimiter({ rules: tight });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const { promise: arrived, resolve } = Promise.withResolvers<void>();
  await using server = await serve(
    limitHttp(limiter, { endpoint: () => endpoint }, (_, response) => {
      response.once('close', () => resolve());
      response.write('half');
    }),
  );
  const hanging = request(server.url).end();
  hanging.on('error', () => undefined);
  await once(hanging, 'response');

  const during = await fetch(server.url, { method: 'HEAD' });
  hanging.destroy();
  await arrived;
  const { underWay } = await limiter.explainCaller('ip:127.0.0.1');

  assert.deepEqual([during.status, during.statusText], [403, 'Secondary rate limit exceeded']);
  assert.equal(during.headers.get('retry-after'), '7');
  assert.equal(underWay, 0);
});

test('node:http: an error of the handler is uncaught, as without limits, and the place is given back', async () => {
  const program = `
    import { createServer } from 'node:http';
    import { RateLimiter } from ${JSON.stringify(new URL('../limiter.ts', import.meta.url).href)};
    import { limitHttp } from ${JSON.stringify(new URL('node-http.ts', import.meta.url).href)};
    const limiter = new RateLimiter();
    const endpoint = limiter.endpoint({ name: 'GET /' });
    const server = createServer(limitHttp(limiter, { endpoint: () => endpoint }, () => { throw new Error('of the handler'); }));
    process.on('uncaughtException', async (error) => {
      console.log(error.message);
      const { underWay } = await limiter.explainCaller('ip:127.0.0.1');
      console.log('under way: ' + underWay);
      process.exit(0);
    });
    server.listen(0, '127.0.0.1', () => fetch('http://127.0.0.1:' + server.address().port).catch(() => undefined));
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

  const said = await text(child.stdout);

  assert.equal(said, 'of the handler\nunder way: 0\n');
});

test('Fetch: a request is under way until its answer was read', async () => {
  const limiter = new RateLimiter({ rules: tight });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const handle = limitFetch(limiter, { endpoint: () => endpoint, caller: () => caller }, () => new Response('hello'));

  const first = await handle(new Request('http://gantry.test/'));
  const during = await handle(new Request('http://gantry.test/'));
  const text = await first.text();
  const afterwards = await handle(new Request('http://gantry.test/'));
  await afterwards.body?.cancel();
  const { underWay } = await limiter.explainCaller(caller.key);

  assert.deepEqual([first.status, during.status, afterwards.status], [200, 403, 200]);
  assert.equal(text, 'hello');
  assert.equal(afterwards.headers.get('x-ratelimit-used'), '2');
  assert.equal(underWay, 0);
});

test('Fetch: an answer without a body, and a handler that throws, end the request', async () => {
  const limiter = new RateLimiter({ rules: tight });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const empty = limitFetch(
    limiter,
    { endpoint: () => endpoint, caller: () => caller },
    () => new Response(null, { status: 304 }),
  );
  const broken = limitFetch(limiter, { endpoint: () => endpoint, caller: () => caller }, () => {
    throw new Error('broken');
  });

  const answer = await empty(new Request('http://gantry.test/'));
  await assert.rejects(broken(new Request('http://gantry.test/')), /broken/);
  const { underWay } = await limiter.explainCaller(caller.key);

  assert.equal(answer.status, 304);
  assert.equal(answer.headers.get('x-ratelimit-limit'), '2');
  assert.equal(underWay, 0);
});

test('Fastify: each route is an endpoint, errors and unknown paths carry the headers too', async () => {
  const limiter = new RateLimiter({ rules: limitRules({ contentPerMinute: { limit: 1, windowSeconds: 60 } }) });
  await using app = Fastify();
  await app.register(fastifyLimits, { limiter, caller: () => ({ ...caller, limit: 100 }) });
  app.get('/repos/:id', async () => ({ fine: true }));
  app.post('/issues', { config: { limit: { content: true } } }, async () => {
    throw new Error('broken');
  });

  const fine = await app.inject({ url: '/repos/7' });
  const broken = await app.inject({ method: 'POST', url: '/issues' });
  const refused = await app.inject({ method: 'POST', url: '/issues' });
  const unknown = await app.inject({ url: '/nowhere' });
  const { windows } = await limiter.explainCaller(caller.key);

  assert.deepEqual([fine.statusCode, fine.headers['x-ratelimit-used']], [200, '1']);
  assert.deepEqual([broken.statusCode, broken.headers['x-ratelimit-used']], [500, '2']);
  assert.deepEqual([refused.statusCode, refused.statusMessage], [403, 'Secondary rate limit exceeded']);
  assert.match(refused.json<{ documentation_url: string }>().documentation_url, /#secondary-rate-limits$/);
  assert.deepEqual([unknown.statusCode, unknown.headers['x-ratelimit-used']], [404, '3']);
  assert.deepEqual(
    windows.map(({ name }) => name).filter((name) => name.startsWith('points')),
    ['points GET /repos/:id', 'points POST /issues', 'points GET *'],
  );
});
