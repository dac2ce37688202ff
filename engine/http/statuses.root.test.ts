import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';
import { pluginConfig, pluginProgram, putPlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { STATUS_ROWS } from '@gantry/testing/status-rows/all.ts';
import { OUTSIDE_OF_ENDPOINTS } from '@gantry/testing/status-rows/outside.ts';
import { OF_MEMBERS, type Case, type Extra } from '@gantry/testing/status-rows/row.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { ENDPOINTS } from './description/endpoints.ts';
import { isBelow, NEWEST, type ApiVersion } from './versions/api-version.ts';

type Asked = { status: number; headers: IncomingMessage['headers']; raw: Buffer };

/** Those of the specification's chapter on errors: any endpoint may answer them. */
const RECURRENT = [304, 400, 404, 406, 409, 500];
const NOT_BUILT = 501;

/** Every endpoint with its rows, in the order of the specification: later requests live on what earlier ones left. */
const ROWS = ENDPOINTS.map((endpoint) => ({ ...endpoint, ...STATUS_ROWS[endpoint.name] }));
const SPECIFIED = ROWS.filter(({ since }) => since === undefined);

/** 1.24 is the specification; each other version is one that clients pin, or the newest. No row differs from 1.44 to 1.51. */
const VERSIONS: readonly ApiVersion[] = ['1.24', '1.30', '1.40', '1.44', NEWEST];

suite('statuses by version', { concurrency: 2 }, () => {
  for (const version of VERSIONS) suiteAt(version);
});

/** Sends the rows at a version to a daemon of its own. */
function suiteAt(version: ApiVersion): void {
  const isSpecified = version === VERSIONS[0];
  suite(`statuses at ${version}`, { concurrency: false }, () => {
    let engine: TestEngine;
    let registries: Registries;
    const ids = new Map<string, string>();
    before(async () => {
      engine = await TestEngine.start({ version });
      registries = await Registries.start(join(engine.directory, 'netns'));
      await registries.index(5010, []);
      await registries.registry(5000);
      await registries.putImage('127.0.0.1:5000/v2/small', '1', []);
      const files = { plugin: pluginProgram() };
      await putPlugin(registries, '127.0.0.1:5000/v2/plugin', pluginConfig('VolumeDriver'), files);
      await makeWorld(engine, ids);
    });
    after(async () => {
      await registries[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    for (const [index, { name, method, path, since, isAskedBefore, cases }] of ROWS.entries()) {
      if (since !== undefined && isAskedBefore !== true && isBelow(version, since)) {
        test(`${index + 1} ${name} answers 400: it came with ${since}`, async () => {
          const answer = await ask(engine, method, path.replaceAll(/\{(\w+)\}/g, 'x'), {}, version);

          assert.equal(answer.status, 400);
          assertRefusal(method, answer);
          assert.match(answer.raw.toString(), new RegExp(`requires minimum API version ${since}`));
        });
        continue;
      }
      for (const each of cases.filter(([, , , extra]) => isSent(extra, version))) {
        const expected = expectedAt(each, version);
        test(`${index + 1} ${name} answers ${expected[0]}: ${expected[1]}`, async () => {
          await checkCase(method, expected);
        });
      }
    }

    for (const [method, status, why, path, extra] of isSpecified ? OUTSIDE_OF_ENDPOINTS : []) {
      test(`${method} ${path} answers ${status}: ${why}`, async () => {
        await checkCase(method, [status, why, path, extra]);
      });
    }

    async function checkCase(method: string, [status, , path, extra = {}]: Case): Promise<void> {
      // One version proves that a refusal changes nothing: the others share its operations.
      const isStateCompared = isSpecified && status >= 300 && extra.changes !== true;
      const before = isStateCompared ? await stateOf(engine) : undefined;

      const answer = await ask(
        engine,
        method,
        path.replace(/\{([\w-]+)\}/, (_, name: string) => ids.get(name)!),
        extra,
        version,
      );

      assert.equal(answer.status, status, answer.raw.toString());
      assertStandardHeaders(answer, version);
      if (status === 304) assert.equal(answer.raw.length, 0);
      else if (status >= 400 && extra.type === undefined) assertRefusal(method, answer);
      else if (status !== 204) assert.equal(typeOf(answer), extra.type ?? 'application/json');
      if (isStateCompared) assert.deepEqual(await stateOf(engine), before);
    }
  });
}

function isSent({ since, until, slow }: Extra = {}, version: ApiVersion): boolean {
  if (slow === true && version !== VERSIONS[0]) return false;
  return (since === undefined || !isBelow(version, since)) && (until === undefined || isBelow(version, until));
}

/** The case with the status and content type of this version. */
function expectedAt([status, why, path, extra = {}]: Case, version: ApiVersion): Case {
  const { newer, eras = {} } = extra;
  const all = Object.entries({ ...(newer !== undefined && { '1.25': { status: newer } }), ...eras }) as [
    ApiVersion,
    { status?: number; type?: string },
  ][];
  const reached = all.filter(([from]) => !isBelow(version, from)).map(([, era]) => era);
  const era = Object.assign({ status, type: extra.type }, ...reached) as { status: number; type: string | undefined };
  return [era.status, why, path, { ...extra, ...(era.type !== undefined && { type: era.type }) }];
}

test('every status that the specification lists is brought about, or it is said why not', () => {
  assert.equal(SPECIFIED.length, 78);
  for (const { name, statuses, cases, never = {} } of ROWS) {
    const seen = new Set(cases.map(([status]) => status));
    for (const status of statuses) {
      const isAccounted = seen.has(status) || status === 500 || never[status] !== undefined;
      assert.ok(isAccounted, `${name}: ${status}`);
    }
    const others = [...seen].filter((status) => !statuses.includes(status));
    for (const status of others) {
      const isKnown = RECURRENT.includes(status) || status === NOT_BUILT || status === 101;
      assert.ok(isKnown, `${name} answers ${status}, which is nowhere in the specification`);
    }
  }
});

test('the compatibility table has one row per endpoint with its true state', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/compatibility.md'), 'utf8');
  const rows = [...text.matchAll(/^\| (\d+) \| `(\S+ \S+)` \| (.+?) \|/gm)].map(([, no, name, state]) => ({
    no: Number(no),
    name,
    state,
  }));

  assert.deepEqual(
    rows,
    ROWS.map(({ name, cases, never = {} }, index) => {
      const reasons = [200, 201, 204].map((status) => never[status] ?? '');
      const isTestedElsewhere = reasons.some((reason) => reason === OF_MEMBERS || reason.endsWith('.test.ts'));
      const state = isTestedElsewhere ? 'works' : expectedState(cases, rows[index]?.state);
      return { no: index + 1, name, state };
    }),
  );
});

/** By what the requests were answered; that something works in part only is said by a person. */
function expectedState(cases: readonly Case[], said = ''): string {
  const statuses = cases.map(([status]) => status);
  const works = statuses.some((status) => status < 300);
  if (works) return statuses.includes(NOT_BUILT) || said === 'partly' ? 'partly' : 'works';
  return statuses.includes(NOT_BUILT) ? '501' : `${statuses[0]}`;
}

/** Containers in every state, and what else the requests of the table name. */
async function makeWorld(engine: TestEngine, ids: Map<string, string>): Promise<void> {
  const sleep = ['sleep', '1000'];
  const run = async (name: string, body = {}): Promise<string> => await engine.run(sleep, body, name);
  const exec = async (container: string, command = ['true']): Promise<string> => {
    const body = { Cmd: command, AttachStdout: true, Tty: true };
    return (await engine.post<{ Id: string }>(`/containers/${container}/exec`, body)).body.Id;
  };
  await run('running', { HostConfig: { Binds: ['used:/v'] } });
  await run('terminal', { Tty: true });
  await run('silent', { HostConfig: { LogConfig: { Type: 'none' } } });
  await run('paused');
  for (const name of ['to-stop', 'to-restart', 'to-kill', 'to-pause']) await run(name);
  for (const name of ['created', 'to-start', 'to-rename', 'to-remove']) await engine.create(sleep, {}, name);
  await engine.create(['/nope'], {}, 'broken');
  await engine.create(sleep, { HostConfig: { ReadonlyRootfs: true } }, 'read-only');
  await engine.run(['true'], {}, 'stopped');
  await engine.wait('stopped');

  for (const name of ['exec', 'exec-attached', 'exec-ended']) ids.set(name, await exec('running'));
  ids.set('exec-detached', await exec('running', sleep)); // its end would be seen as a change
  ids.set('exec-paused', await exec('paused'));
  await engine.post('/containers/paused/pause');
  await ask(engine, 'POST', `/exec/${ids.get('exec-ended')}/start`, { body: {} });

  await engine.post('/volumes/create', { Name: 'unused' });
  await engine.post('/images/busybox/tag?repo=to-untag');
  await engine.post('/images/create?fromSrc=-&repo=unused-name', Buffer.alloc(1024));
  await engine.create(['true'], { Image: 'unused-name' }, 'of-other-image');
  ids.set('image', (await engine.get<{ Id: string }>('/images/busybox/json')).body.Id);
}

/** All that a client can see, and what was told: a request that is refused changes none of it. */
async function stateOf(engine: TestEngine): Promise<unknown> {
  const { body: containers } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  const inspected = await Promise.all(
    containers.map(async ({ Id }) => (await engine.get(`/containers/${Id}/json`)).body),
  );
  const lists = ['/images/json?all=1', '/volumes', '/networks'].map(async (path) => (await engine.get(path)).body);
  const events = (await engine.get(`/events?since=1&until=${Date.now() / 1000}`)).raw.toString();
  return { inspected, lists: await Promise.all(lists), events };
}

/** Sends a request as it is; of a success that may go on for ever only what came first is read. */
async function ask(engine: TestEngine, method: string, path: string, extra: Extra, version = '1.24'): Promise<Asked> {
  const { content, type } = await encode(extra.body);
  const headers: OutgoingHttpHeaders = { ...(type !== undefined && { 'Content-Type': type }), ...extra.headers };
  const outcome = Promise.withResolvers<Asked>();
  const prefix = path.startsWith('/v') && /^\/v\d/.test(path) ? '' : `/v${version}`;
  const sent = request({ socketPath: engine.socketPath, method, path: prefix + path, headers, agent: false });
  sent.on('upgrade', ({ statusCode = 0, headers }, socket) => {
    socket.destroy();
    outcome.resolve({ status: statusCode, headers, raw: Buffer.alloc(0) });
  });
  sent.on('response', (response) => {
    const { statusCode: status = 0, headers } = response;
    const isLive =
      path === '/events' ||
      (status === 200 && path === '/containers/stats') ||
      (status === 200 && /raw-stream|multiplexed-stream/.test(headers['content-type'] ?? ''));
    if (isLive && !path.startsWith('/exec/')) {
      response.destroy();
      outcome.resolve({ status, headers, raw: Buffer.alloc(0) });
    } else {
      buffer(response).then((raw) => outcome.resolve({ status, headers, raw }), outcome.reject);
    }
  });
  sent.on('error', outcome.reject);
  sent.end(content);
  return await outcome.promise;
}

async function encode(body: unknown): Promise<{ content?: Buffer | string; type?: string }> {
  if (body === undefined) return {};
  if (body === 'busybox') return { content: await busyboxArchive(), type: 'application/x-tar' };
  if (typeof body === 'string') return { content: body };
  if (Buffer.isBuffer(body)) return { content: body, type: 'application/x-tar' };
  return { content: JSON.stringify(body), type: 'application/json' };
}

function assertStandardHeaders({ headers }: Asked, version: string): void {
  assert.equal(headers['api-version'], version);
  assert.match(String(headers.server), /^Gantry\/\d/);
  assert.equal(headers.ostype, 'linux');
  assert.equal(headers['docker-experimental'], 'false');
}

function assertRefusal(method: string, answer: Asked): void {
  assert.equal(answer.headers['content-type'], 'application/json');
  if (method === 'HEAD') return;
  const body = JSON.parse(answer.raw.toString()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(body), ['message']);
  assert.match(String(body.message), /\w+ \w+/);
  assert.doesNotMatch(String(body.message), /undefined|\[object|\n\s+at |\{\w+\}|\/:/);
  assert.equal(internalWord(String(body.message)), undefined, String(body.message));
}

function typeOf({ headers }: Asked): string {
  return headers['content-type']?.split(';')[0] ?? '';
}
