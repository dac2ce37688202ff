import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

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
const dependency = async (name: string): Promise<string> => {
  const file = join(root, 'node_modules', name, 'package.json');
  return `${name}@${(JSON.parse(await readFile(file, 'utf8')) as { version: string }).version}`;
};
await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
await run(
  'npm',
  [
    ...['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'],
    ...packages.map(({ filename }) => `./${filename}`),
    ...(await Promise.all(['fastify', '@types/node'].map(dependency))),
  ],
  { cwd: project },
);

/** Uses everything that a README shows, and prints what came of it. */
const PROGRAM = `
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fastifyLimits } from '@gantry/limiter/fastify.js';
import { limitFetch } from '@gantry/limiter/fetch.js';
import { RateLimiter } from '@gantry/limiter/limiter.js';
import { limitHttp } from '@gantry/limiter/node-http.js';
import { callerFrom } from '@gantry/limiter/primary.js';
import { RedisStore } from '@gantry/limiter/redis/store.js';
import { SqliteStore } from '@gantry/limiter/sqlite/store.js';
import Fastify from 'fastify';

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

const used = 'x-ratelimit-used';
console.log(headers[used], answer.headers.get(used), response.headers.get(used), typeof RedisStore);
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

// @ts-expect-error: a text is no number
export const points = () => limiter.endpoint({ name: 'GET /x', points: 'many' });
// @ts-expect-error: an id is no number
export const id = (container: Inspect): number => container.Id;
`;

const PRINTED = 'true ENOENT\n1 1 1 function\n';

async function output(file: string): Promise<string> {
  const { stdout } = await run(process.execPath, ['--enable-source-maps', file], { cwd: project });
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
    const others = files.map(({ path }) => path).filter((path) => !path.startsWith('build/'));
    assert.deepEqual(
      others.filter((path) => !['package.json', 'README.md'].includes(path)),
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

test('the packages can be installed and used with TypeScript, and have their types', async () => {
  const options = { module: 'nodenext', target: 'esnext', strict: true, skipLibCheck: true, types: ['node'] };
  await writeFile(join(project, 'typed.ts'), CLIENT + PROGRAM + TYPED);
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...options, outDir: 'out' }, files: ['typed.ts'] }),
  );

  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout: problems } = await run(process.execPath, [compiler, '-p', project]).catch(
    (error: { stdout: string }) => error,
  );

  assert.equal(problems, '');
  assert.equal(await output('out/typed.js'), PRINTED);
});
