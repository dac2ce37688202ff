/** The pair of the same ecosystem: @fastify/http-proxy with @fastify/rate-limit in memory, one limit per credential. */
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';

const [port = '', upstream = ''] = process.argv.slice(2);
const app = Fastify();
await app.register(rateLimit, {
  max: 1_000_000_000,
  timeWindow: '1 hour',
  cache: 10_000,
  keyGenerator: ({ headers, ip }) => headers.authorization ?? ip,
});
await app.register(httpProxy, { upstream, undici: { connections: 1024, pipelining: 1 } });
await app.listen({ port: Number(port), host: '127.0.0.1' });
