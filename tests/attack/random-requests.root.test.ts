import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, readFileSync, readdirSync, rmdirSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { internalWord } from '@gantry/testing/internal-words.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Dice } from './random.ts';
import { RequestSource, type Attempt, type OpenApi } from './requests.ts';

/** More by hand: `GANTRY_REQUESTS=100000 ./gantry test tests/attack`. */
const REQUESTS = Number(process.env.GANTRY_REQUESTS ?? 4000);
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 8;
const RESIDENT_KB = 300 * 1024;
/** Follows, waits and stops last; what a client does not wait for must do no harm either. */
const PATIENCE_MS = 150;
const NAMES = Array.from({ length: 12 }, (_, index) => `attacked-${index}`);
const CGROUP_PARENT = `/gantry-attack-${process.pid}`;

test(`${REQUESTS} random requests are answered or refused, and none of them is an error of the daemon`, async (t) => {
  t.diagnostic(`GANTRY_ATTACK_SEED=${SEED}`);
  await using engine = await TestEngine.start();
  const { body: document } = await engine.get<OpenApi>('/openapi.json');
  const { pid } = engine;
  const counts: Record<string, number> = {};
  let sent = 0;

  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const dice = new Dice(SEED + client);
      const source = new RequestSource(document, dice, NAMES, CGROUP_PARENT);
      while (sent < REQUESTS) {
        sent += 1;
        if (sent % 500 === 0) await tidy(engine);
        const outcome = dice.chance(0.1)
          ? await sendBytes(engine.socketPath, source.damaged())
          : await send(engine.socketPath, source.next());
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      }
    }),
  );

  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual(errorsIn(engine.log), []);
  assert.equal((await engine.get('/_ping')).status, 200);
  process.kill(pid, 0);
  await tidy(engine);
  await nothingLeft(engine);
});

/** Containers and names come back, so that most requests meet something that is there. */
async function tidy(engine: TestEngine): Promise<void> {
  const { body: containers } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  for (const { Id } of containers) await engine.delete(`/containers/${Id}?force=1&v=1`);
  const { body } = await engine.get<{ Volumes: { Name: string }[] | null }>('/volumes');
  for (const { Name } of body.Volumes ?? []) await engine.delete(`/volumes/${encodeURIComponent(Name)}`);
  const { body: images } = await engine.get<{ Id: string; RepoTags: string[] | null }[]>('/images/json');
  const others = images.filter(({ RepoTags }) => !RepoTags?.includes('busybox:latest'));
  for (const { Id } of others) await engine.delete(`/images/${Id}?force=1`);
  if (others.length === images.length) await engine.loadBusybox();
  for (const name of NAMES) {
    const settings = { OpenStdin: true, HostConfig: { CgroupParent: CGROUP_PARENT } };
    const { status } = await engine.post(`/containers/create?name=${name}`, {
      Image: 'busybox',
      Cmd: ['cat'],
      ...settings,
    });
    assert.ok([201, 404, 409].includes(status), `create answers ${status}`); // another client may be faster
  }
  for (const name of NAMES.slice(0, 6)) await engine.post(`/containers/${name}/start`);
}

/** The status, or what became of a request that is not answered in time. */
async function send(socketPath: string, { method, path, headers, body }: Attempt): Promise<string> {
  const length = { 'Content-Length': body.length };
  const request = http.request({ socketPath, method, path, headers: { ...length, ...headers }, agent: false });
  const outcome = Promise.withResolvers<string>();
  request.on('upgrade', ({ statusCode }, socket) => {
    socket.on('error', () => undefined).end(body);
    setTimeout(PATIENCE_MS / 10).then(() => outcome.resolve(String(statusCode)), outcome.reject);
  });
  request.on('response', (response) => {
    statusOf(`${method} ${path}`, response).then(outcome.resolve, outcome.reject);
  });
  request.on('error', (error: NodeJS.ErrnoException) => outcome.resolve(error.code ?? 'error'));
  request.end(body);
  const patience = setTimeout(PATIENCE_MS, 'left');
  const how = await Promise.race([outcome.promise, patience]);
  request.destroy();
  return how;
}

async function statusOf(what: string, response: http.IncomingMessage): Promise<string> {
  const status = response.statusCode ?? 0;
  try {
    const answer = await buffer(response);
    if (status >= 400 && !what.startsWith('HEAD')) assertRefusal(what, answer);
    return String(status);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return `${status} cut`;
  }
}

function assertRefusal(what: string, answer: Buffer): void {
  const body = JSON.parse(answer.toString()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(body), ['message'], what);
  assert.doesNotMatch(String(body.message), /undefined|\[object|\n\s+at |SQLITE|Cannot read/, what);
  assert.equal(internalWord(String(body.message)), undefined, `${what}: ${String(body.message)}`);
}

/** Bytes as they are; half of the senders say at once that nothing more will come. */
async function sendBytes(socketPath: string, bytes: Buffer): Promise<string> {
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  socket.on('error', () => undefined);
  try {
    if (bytes.length % 2 === 0) socket.end(bytes);
    else socket.write(bytes);
    const answered = once(socket, 'data').then(
      ([answer]) => /^HTTP\/1\.1 (\d+)/.exec(String(answer))?.[1] ?? 'no head',
    );
    return await Promise.race([
      answered.catch(() => 'cut'),
      once(socket, 'close').then(() => 'closed'),
      setTimeout(PATIENCE_MS / 10, 'left'),
    ]);
  } finally {
    socket.destroy();
  }
}

/** Errors that nobody meant to throw: the daemon logs them with a stack. */
function errorsIn(log: string): string[] {
  return log.split('\n').filter((line) => /"level":[56]0/.test(line) || /^\s+at /.test(line));
}

function residentKb({ pid }: TestEngine): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

async function nothingLeft(engine: TestEngine): Promise<void> {
  const { body: containers } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  for (const { Id } of containers) assert.equal((await engine.delete(`/containers/${Id}?force=1&v=1`)).status, 204);
  const deadline = performance.now() + 120_000;
  for (;;) {
    const cgroups = globSync([`/sys/fs/cgroup${CGROUP_PARENT}/*/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/*/`]);
    const shims = readdirSync(join(engine.directory, 'exec/shims'));
    const followers = Number(/"NEventsListener":(\d+)/.exec((await engine.get('/info')).raw.toString())?.[1]);
    if (cgroups.length === 0 && shims.length === 0 && followers === 0) break;
    assert.ok(performance.now() < deadline, JSON.stringify({ cgroups, shims, followers }));
    await setTimeout(50);
  }
  for (const parent of globSync([`/sys/fs/cgroup${CGROUP_PARENT}/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/`]))
    rmdirSync(parent);
  // Memory is given back when the daemon has been quiet for a while.
  while (residentKb(engine) > RESIDENT_KB) {
    assert.ok(performance.now() < deadline, `${residentKb(engine)} KB are resident`);
    await setTimeout(500);
  }
}
