import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { foreignPackages, installInto } from './packages-project.ts';

const root = dirname(import.meta.dirname);
const run = promisify(execFile);

/** An empty project into which the packages are installed as anybody would. */
const project = await mkdtemp(join(tmpdir(), 'gantry-packages-'));
after(async () => await rm(project, { recursive: true }));

type Packed = Readonly<{ filename: string; files: readonly Readonly<{ path: string }>[] }>;

async function pack(workspace: string): Promise<Packed> {
  const args = ['pack', '--json', '--pack-destination', project];
  const { stdout } = await run('npm', args, { cwd: join(root, workspace) });
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as Packed[];
  assert.ok(packed !== undefined);
  return packed;
}

const packages = [await pack('limiter'), await pack('client')];
installInto(project, [...packages.map(({ filename }) => `./${filename}`), ...foreignPackages()]);

/** Uses everything that a README shows, and prints what came of it. */
const PROGRAM = `
import { once } from 'node:events';
import { createServer } from 'node:http';
import { callerFrom, RateLimiter } from '@gantry/limiter';
import { expressLimits } from '@gantry/limiter/express';
import { fastifyLimits } from '@gantry/limiter/fastify';
import { limitFetch } from '@gantry/limiter/fetch';
import { honoLimits } from '@gantry/limiter/hono';
import { limitHttp } from '@gantry/limiter/node-http';
import { RedisStore } from '@gantry/limiter/redis';
import { SqliteStore } from '@gantry/limiter/sqlite';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';

const app = Fastify();
await app.register(fastifyLimits, { limiter: new RateLimiter() });
app.get('/', { config: { limit: { content: true } } }, async () => 'hello');
const { headers } = await app.inject('/');

const limiter = new RateLimiter({ store: new SqliteStore(':memory:') });
const hello = limiter.endpoint({ name: 'GET /' });
const server = createServer(limitHttp(limiter, { endpoint: () => hello }, (_, response) => response.end('hello')));
await once(server.listen(0, '127.0.0.1'), 'listening');
const address = server.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
const answer = await fetch(\`http://127.0.0.1:\${port}/\`);
server.close();

const caller = () => callerFrom({ kind: 'anonymous', address: '192.0.2.1' });
const other = new RateLimiter();
const get = other.endpoint({ name: 'GET /' });
const handler = limitFetch(other, { endpoint: () => get, caller }, () => new Response('hello'));
const response = await handler(new Request('http://host/'));

const expressApp = express().set('env', 'test');
const ada = callerFrom({ kind: 'user', userId: 'ada' });
const issues = { limiter: new RateLimiter(), limit: { content: true } };
expressApp.get('/things/:id', expressLimits({ ...issues, caller: () => ada }), (_, response) => void response.send('hello'));
expressApp.use(expressLimits({ limiter: issues.limiter }));
expressApp.post('/fails', () => { throw new Error('of the handler'); });
const expressServer = expressApp.listen(0, '127.0.0.1');
await once(expressServer, 'listening');
const expressAddress = expressServer.address();
const expressPort = typeof expressAddress === 'object' && expressAddress !== null ? expressAddress.port : 0;
const things = await fetch(\`http://127.0.0.1:\${expressPort}/things/7\`);
const failed = await fetch(\`http://127.0.0.1:\${expressPort}/fails\`, { method: 'POST' });
await Promise.all([things.text(), failed.text()]);
expressServer.close();
const { windows } = await issues.limiter.explainCaller('user:ada');

const honoApp = new Hono();
const honoLimiter = new RateLimiter();
const one = { ...caller(), limit: 2 };
honoApp.use(honoLimits({ limiter: honoLimiter, caller: () => one }));
honoApp.get('/', (context) => context.text('hello'));
honoApp.get('/fails', () => { throw new Error('of the handler'); });
honoApp.onError((_, context) => context.text('failed', 500));
const honoAnswers = [await honoApp.request('/'), await honoApp.request('/fails'), await honoApp.request('/')];
for (const each of honoAnswers) await each.text();
const { underWay } = await honoLimiter.explainCaller(one.key);

const used = 'x-ratelimit-used';
console.log(headers[used], answer.headers.get(used), response.headers.get(used), typeof RedisStore);
console.log(things.status, things.headers.get(used), windows.map(({ name }) => name).join(), failed.status, failed.headers.get(used));
console.log(honoAnswers.map((each) => [each.status, each.headers.get(used)]).join(' '), underWay);
`;

const CLIENT = `
import { Connection, ConnectionError } from '@gantry/client/connection.js';
import { version } from '@gantry/client/system.js';

const nowhere = new Connection({ kind: 'unix', socketPath: '/nowhere/engine.sock' });
await version(nowhere).catch((error) => console.log(error instanceof ConnectionError, error.code));
`;

/** Types that are lost would be \`any\`, which takes everything. */
const TYPED = `
import type { Inspect } from '@gantry/client/containers.js';
import type { Caller } from '@gantry/limiter';
import type { Context } from 'hono';

// @ts-expect-error: a text is no number
export const points = () => limiter.endpoint({ name: 'GET /x', points: 'many' });
// @ts-expect-error: an id is no number
export const id = (container: Inspect): number => container.Id;

declare function called(name: string): Caller;
type Sender = { address: string };
export const inferred = limitFetch(
  other,
  {
    endpoint: (_, sender) => (sender.address === '' ? get : hello),
    caller: (_: Request, { address }: Sender) => called(address),
  },
  (_, sender) => new Response(sender.address),
);
// @ts-expect-error: the context is a Sender
export const wrong = () => inferred(new Request('http://host/'), { address: 1 });

type Env = { Bindings: { remote: string }; Variables: { user: string } };
const typedApp = new Hono<Env>();
typedApp.use(honoLimits({ limiter, caller: ({ env, var: { user } }: Context<Env>) => called(env.remote + user) }));
const owner = honoLimits({ limiter, caller: (c: Context<Env, '/repos/:owner'>) => called(c.req.param('owner')) });
typedApp.get('/repos/:owner', owner, (c) => c.text(c.var.user));
expressApp.get('/:id', expressLimits({ limiter, caller: ({ params }: express.Request) => called(String(params.id)) }), () => undefined);
`;

const PRINTED = `true ENOENT
1 1 1 function
200 1 core,content-minute,content-hour,cpu,graphql-cpu,points GET /things/:id 500 1
200,1 500,2 403,2 0
`;

/** The oldest Node that the limiter is for, as it comes from npm. */
const NODE_22 = join(project, 'node_modules/node-22/bin/node');

async function output(file: string, node = process.execPath): Promise<string> {
  const { stdout } = await run(node, ['--enable-source-maps', file], { cwd: project });
  return stdout;
}

test('the published package is JavaScript with types and source maps, without tests', () => {
  for (const { files } of packages) {
    const paths = files.map(({ path }) => path).filter((path) => path.startsWith('build/'));

    const modules = paths.filter((path) => path.endsWith('.js'));
    assert.ok(modules.length >= 8, String(modules.length));
    for (const path of modules) {
      assert.ok(paths.includes(`${path}.map`), `${path} has a source map`);
      assert.ok(paths.includes(path.replace(/js$/, 'd.ts')), `${path} has types`);
    }
    assert.ok(files.some(({ path }) => path === 'LICENSE'));
    const others = files.map(({ path }) => path).filter((path) => !path.startsWith('build/'));
    assert.deepEqual(
      others.filter((path) => !['LICENSE', 'package.json', 'README.md'].includes(path)),
      [],
    );
    assert.deepEqual(
      paths.filter((path) => /\.test\.|contract|fixture|model|test-redis/.test(path)),
      [],
    );
  }
});

test('the packages can be installed and used with JavaScript', async () => {
  await writeFile(join(project, 'main.js'), CLIENT + PROGRAM);

  assert.equal(await output('main.js'), PRINTED);
});

test('the limiter runs with Node 22', async () => {
  await writeFile(join(project, 'oldest.js'), PROGRAM);

  assert.match((await run(NODE_22, ['--version'])).stdout, /^v22\./);
  assert.equal(await output('oldest.js', NODE_22), PRINTED.replace('true ENOENT\n', ''));
});

test('the limiter exports its entries, and no file behind them', async () => {
  const entries = ['', '/express', '/fastify', '/fetch', '/hono', '/node-http', '/redis', '/sqlite'];
  const internals = ['/limiter.js', '/limiter.ts', '/redis/server.js', '/build/redis/server.js', '/build/types.d.ts'];
  const program = `
    const loads = async (name) => await import('@gantry/limiter' + name).then(() => true, () => false);
    const names = ${JSON.stringify([...entries, ...internals])};
    console.log((await Promise.all(names.map(async (name) => (await loads(name)) ? [name] : []))).flat().join(' '));
  `;
  await writeFile(join(project, 'entries.js'), program);

  assert.equal(await output('entries.js'), `${entries.join(' ')}\n`);
});

/** The examples of the README that came with the package, each as a file. */
const readme = await readFile(join(project, 'node_modules/@gantry/limiter/README.md'), 'utf8');
const examples = ['Express', 'Fastify', 'Hono', 'node:http', 'Fetch'].map(
  (chapter): [file: string, chapter: string] => {
    return [`${chapter.replace(':', '-')}.ts`, chapter];
  },
);
for (const [file, chapter] of examples) {
  test(`the README's example for ${chapter} runs as it is written`, async () => {
    const code = new RegExp(`^## ${chapter}$[^]*?^\`\`\`ts$([^]*?)^\`\`\`$`, 'm').exec(readme)?.[1] ?? '';
    await writeFile(join(project, file), code);
    const asks = `
      const shown = await import('./${file}');
      const handler = shown.default?.fetch ?? ((request) => fetch(request));
      const ask = async () => await handler(new Request('http://127.0.0.1:' + (process.env.PORT ?? 0) + '/hello'), '192.0.2.1');
      const answers = [];
      for (let n = 0; n < 61; n += 1) answers.push(await ask());
      const [first] = answers;
      console.log([await first.text(), first.headers.get('x-ratelimit-remaining'), answers.at(-1).status].join());
      process.exit();
    `;
    await writeFile(join(project, `${file}.run.js`), asks);
    const { stdout } = await run(NODE_22, [`${file}.run.js`], {
      cwd: project,
      env: { ...process.env, PORT: await freePort() },
    });

    assert.equal(stdout.split('\n').at(-2), 'hello,59,403');
  });
}

test('the packages can be installed and used with TypeScript, and have their types', async () => {
  const options = { module: 'nodenext', target: 'esnext', strict: true, skipLibCheck: true, types: ['node'] };
  await writeFile(join(project, 'typed.ts'), CLIENT + PROGRAM + TYPED);
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: { ...options, outDir: 'out' },
      files: ['typed.ts', ...examples.map(([file]) => file)],
    }),
  );

  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout: problems } = await run(process.execPath, [compiler, '-p', project]).catch(
    (error: { stdout: string }) => error,
  );

  assert.equal(problems, '');
  assert.equal(await output('out/typed.js'), PRINTED);
});

/** A port that is free now; the examples take their port from outside. */
async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? String(address.port) : '';
}
