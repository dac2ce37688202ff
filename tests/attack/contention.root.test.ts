import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { ApiError, ConnectionError } from '@gantry/client/connection.ts';
import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { EventMessage } from '@gantry/engine/events/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { disorder, living, type Told } from './event-order.ts';
import { Dice } from './random.ts';

/** Longer by hand: `GANTRY_CONTENTION_SECONDS=600 ./gantry test tests/attack/contention.root.test.ts`. */
const SECONDS = Number(process.env.GANTRY_CONTENTION_SECONDS ?? 8);
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 12;
const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
/** Of its own, so that everything below it is of this test. */
const CGROUP_PARENT = `/gantry-contention-${process.pid}`;
/** What an operation in the wrong state is told; at 1.24 some of it has the status 500. */
const WRONG_STATE =
  /is not running|is already paused|is not paused|is paused|is already stopped|is restarting|is starting|is removing|removal of container|cannot start a paused container|Container \S+ is (stopping|exited|running)|cannot become|the process does not run|cannot be reached|is already in use/;

type Spec = Readonly<{ Cmd: string[]; [key: string]: unknown }>;

/** It says the lines of a run in order, from 0, and obeys the stop signal. */
const COUNT = 'trap "exit 0" TERM; i=0; while :; do echo $i; i=$((i+1)); usleep 3000; done';
const SPECS: readonly Spec[] = [
  { Cmd: ['sh', '-c', COUNT] },
  { Cmd: ['cat'], OpenStdin: true, HostConfig: { NetworkMode: 'none' } },
  {
    Cmd: ['sh', '-c', 'usleep 200000; exit 3'],
    HostConfig: { RestartPolicy: { Name: 'always' }, NetworkMode: 'none' },
  },
  { Cmd: ['sleep', '100000'], Tty: true, Healthcheck: { Test: ['CMD', 'true'], Interval: 1e8 } },
  {
    Cmd: ['sh', '-c', COUNT],
    HostConfig: { NetworkMode: 'host', LogConfig: { Type: 'json-file' } },
    Volumes: { '/data': {} },
  },
];

type Refusal = Readonly<{ what: string; status: number; message: string }>;

/** What the clients of one test have met. */
class Clients {
  readonly engine: TestEngine;
  readonly refusals: Refusal[] = [];
  readonly statuses: Record<string, number> = {};
  /** While it is, answers may be missing. */
  mayDie = false;

  constructor(engine: TestEngine) {
    this.engine = engine;
  }

  async work(dice: Dice, until: number): Promise<void> {
    while (performance.now() < until) {
      try {
        await this.#one(dice);
      } catch (error) {
        if (!this.mayDie || !isCut(error)) throw error;
        await setTimeout(10);
      }
    }
  }

  async create(name: string, dice: Dice): Promise<void> {
    const spec = dice.pick(SPECS);
    const HostConfig = { ...(spec.HostConfig as object | undefined), CgroupParent: CGROUP_PARENT };
    const Labels = { counts: String(spec.Cmd.includes(COUNT)) };
    await this.#post(`/containers/create?name=${name}`, { Image: 'busybox', Labels, ...spec, HostConfig });
  }

  async #one(dice: Dice): Promise<void> {
    const name = dice.pick(NAMES);
    const path = `/containers/${name}`;
    const seconds = dice.upTo(2);
    const operations: (() => Promise<unknown>)[] = [
      async () => await this.create(name, dice),
      async () => await this.#post(`${path}/start`),
      async () => await this.#post(`${path}/start`),
      async () => await this.#post(`${path}/stop?t=${seconds}`),
      async () => await this.#post(`${path}/restart?t=${seconds}`),
      async () => await this.#post(`${path}/kill?signal=${dice.pick(['KILL', 'TERM', 'USR1', ''])}`),
      async () => await this.#post(`${path}/pause`),
      async () => await this.#post(`${path}/unpause`),
      async () => await this.#post(`${path}/unpause`),
      async () => await this.#post(`${path}/rename?name=${dice.pick([...NAMES, 'zeta'])}`),
      async () => await this.#post(`/containers/zeta/rename?name=${name}`),
      async () => await this.#post(`${path}/resize?w=${40 + seconds}&h=20`),
      async () => await this.#post(`${path}/update`, { CpuShares: 512 + seconds }),
      async () => await this.#exec(path, dice),
      async () => await this.#exec(path, dice),
      async () => await this.#post(`/commit?container=${name}&repo=of-${name}&pause=${seconds}`),
      async () => await this.#read('POST', `${path}/wait`, dice),
      async () => await this.#read('GET', `${path}/logs?follow=1&stdout=1&stderr=1&tail=5`, dice),
      async () => await this.#read('GET', `${path}/stats`, dice),
      async () => await this.#attach(path, dice),
      async () => await this.#archive(path),
      async () => this.#tell('inspect', await this.engine.get(`${path}/json`)),
      async () => this.#tell('top', await this.engine.get(`${path}/top`)),
      async () => this.#tell('list', await this.engine.get('/containers/json?all=1')),
      async () => this.#tell('delete', await this.engine.delete(`${path}?v=1&force=${seconds}`)),
    ];
    await dice.pick(operations)();
  }

  async #post(path: string, body?: unknown): Promise<unknown> {
    const answer = await this.engine.post(path, body);
    this.#tell(path, answer);
    return answer.body;
  }

  async #exec(path: string, dice: Dice): Promise<void> {
    const Cmd = dice.pick([['true'], ['sh', '-c', 'exit 4'], ['nope'], ['usleep', '50000']]);
    const body = await this.#post(`${path}/exec`, { Cmd, AttachStdout: true });
    const { Id } = body as { Id?: string };
    if (Id === undefined) return;
    await this.#post(`/exec/${Id}/start`, { Detach: dice.chance(0.5) });
    this.#tell('exec inspect', await this.engine.get(`/exec/${Id}/json`));
  }

  /** A client that goes when it has seen enough. */
  async #read(method: string, path: string, dice: Dice): Promise<void> {
    const signal = AbortSignal.timeout(20 + dice.upTo(300));
    try {
      this.#tell(path, await this.engine.request(method, path, { signal }));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** A removal in the middle breaks the connection. */
  async #archive(path: string): Promise<void> {
    try {
      this.#tell('archive', await this.engine.get(`${path}/archive?path=/etc`));
    } catch (error) {
      if (!isCut(error)) throw error;
    }
  }

  async #attach(path: string, dice: Dice): Promise<void> {
    const { socket } = await this.engine.hijack(`${path}/attach?stream=1&stdin=1&stdout=1&logs=1`).catch((error) => {
      if (!(error instanceof ApiError)) throw error;
      this.#tell('attach', { status: error.status, raw: Buffer.from(error.message) });
      return { socket: undefined };
    });
    if (socket === undefined) return;
    socket.on('error', () => undefined).resume();
    socket.write('a line\n');
    await setTimeout(dice.upTo(200));
    socket.destroy();
  }

  #tell(path: string, { status, raw }: { status: number; raw: Buffer }): void {
    const what = path.replace(/^\/containers\/[^/]+/, '').replace(/[?].*|\/[0-9a-f]{64}/g, '');
    this.statuses[`${what} ${status}`] = (this.statuses[`${what} ${status}`] ?? 0) + 1;
    if (status < 500) return;
    this.refusals.push({ what, status, message: raw.toString() });
  }
}

function isCut(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof Error && 'code' in error && error.code === 'ECONNRESET');
}

for (const kills of [false, true]) {
  const name = kills ? 'the same while the daemon is killed' : `${CLIENTS} clients at ${NAMES.length} containers`;
  test(`records, kernel, events and logs agree: ${name}`, async (t) => {
    t.diagnostic(`GANTRY_ATTACK_SEED=${SEED}`);
    await using engine = await TestEngine.start();
    const clients = new Clients(engine);
    clients.mayDie = kills;
    const until = performance.now() + SECONDS * 1000;

    const work = Array.from({ length: CLIENTS }, async (_, index) => await clients.work(new Dice(SEED + index), until));
    if (kills) await killNowAndThen(engine, new Dice(SEED - 1), until);
    await Promise.all(work);

    t.diagnostic(JSON.stringify(clients.statuses));
    await agree(engine, clients, t);
  });
}

async function killNowAndThen(engine: TestEngine, dice: Dice, until: number): Promise<void> {
  while (performance.now() < until) {
    await setTimeout(1000 + dice.upTo(3000));
    await engine.kill();
    await engine.startAgain();
  }
}

async function agree(engine: TestEngine, { refusals }: Clients, t: TestContext): Promise<void> {
  assert.deepEqual(
    refusals.filter(({ status, message }) => status !== 501 && !WRONG_STATE.test(message)),
    [],
    'nothing is refused but what is in another state',
  );
  const { body: containers } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  for (const { Id } of containers) await isAsSaid(engine, Id);
  for (const { Id } of containers) await engine.post(`/containers/${Id}/stop?t=1`);
  let lines = 0;
  for (const { Id } of containers) lines += await logIsWhole(engine, Id);
  assert.deepEqual(living(await eventsOf(engine)), new Set(containers.map(({ Id }) => Id)));
  for (const { Id } of containers) assert.equal((await engine.delete(`/containers/${Id}?v=1&force=1`)).status, 204);
  const events = await eventsOf(engine);
  t.diagnostic(`${events.length} events, ${lines} lines`);
  assert.deepEqual(disorder(events), []);
  assert.equal(living(events).size, 0);
  await nothingIsLeft(engine);
  assert.deepEqual(errorsIn(engine.log), []);
}

/** The kernel has what the record says. A restart policy changes both at any moment. */
async function isAsSaid(engine: TestEngine, id: string): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const before = await inspect(engine, id);
    const isThere = existsSync(`/proc/${before.State.Pid}`) && before.State.Pid > 0;
    const isFrozen = frozen(id);
    const after = await inspect(engine, id);
    const { Running, Paused, Restarting } = before.State;
    if (isThere === (Running && !Restarting) && isFrozen === Paused) return;
    const isSame = JSON.stringify(before.State) === JSON.stringify(after.State);
    assert.ok(
      performance.now() < deadline,
      `${id} is ${isThere ? '' : 'not '}there, ${isFrozen ? '' : 'not '}frozen, same ${isSame}: ${JSON.stringify(after.State)}`,
    );
    await setTimeout(20);
  }
}

async function inspect(engine: TestEngine, id: string): Promise<Inspect> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body;
}

function frozen(id: string): boolean {
  const [first = ''] = globSync([
    `/sys/fs/cgroup/freezer${CGROUP_PARENT}/${id}/freezer.state`,
    `/sys/fs/cgroup${CGROUP_PARENT}/${id}/cgroup.freeze`,
  ]);
  return first !== '' && /^(FROZEN|FREEZING|1)$/.test(readFileSync(first, 'utf8').trim());
}

/** The lines of a container that counts: each is one more than the last, or the first of a run. Returns how many. */
async function logIsWhole(engine: TestEngine, id: string): Promise<number> {
  const { Config } = await inspect(engine, id);
  if (Config.Labels.counts !== 'true') return 0;
  const { stdout } = await engine.output(id);
  const lines = stdout.split('\n').filter(Boolean).map(Number);
  const wrong = lines.filter((line, index) => line !== 0 && line !== (lines[index - 1] ?? -1) + 1);
  assert.deepEqual(wrong, []);
  return lines.length;
}

async function eventsOf(engine: TestEngine): Promise<Told[]> {
  const filters = encodeURIComponent(JSON.stringify({ type: ['container'] }));
  const stream: Readable = await engine.stream(
    'GET',
    `/events?since=1&until=${Date.now() / 1000 + 0.1}&filters=${filters}`,
  );
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  const messages = text.split('\n').filter(Boolean);
  return messages.map((line) => {
    const { Action, Actor, timeNano } = JSON.parse(line) as EventMessage;
    return { action: Action, id: Actor.ID, timeNano };
  });
}

async function nothingIsLeft(engine: TestEngine): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const cgroups = globSync([`/sys/fs/cgroup${CGROUP_PARENT}/*/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/*/`]);
    const folders = ['exec/shims/*', 'data/containers/*', 'data/writable/*', 'data/writable/.trash/*'].flatMap((name) =>
      globSync(join(engine.directory, name)),
    );
    const { body } = await engine.get<{ Volumes: unknown[] | null }>('/volumes');
    const ports = await portsOfBridge(engine);
    if (cgroups.length + folders.length + (body.Volumes ?? []).length === 0 && ports <= STOCK) break;
    assert.ok(performance.now() < deadline, JSON.stringify({ cgroups, folders, volumes: body.Volumes, ports }));
    await setTimeout(50);
  }
  for (const parent of globSync([`/sys/fs/cgroup${CGROUP_PARENT}/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/`]))
    rmdirSync(parent);
}

/** Network namespaces that are kept ready have one each. */
const STOCK = 8;

async function portsOfBridge(engine: TestEngine): Promise<number> {
  const links = await engine.onHost(['ip', '-o', 'link', 'show', 'type', 'veth']);
  return links.split('\n').filter(Boolean).length;
}

/** What nobody meant to throw: the daemon logs it as an error, with its stack. */
function errorsIn(log: string): string[] {
  return log.split('\n').filter((line) => /"level":[56]0/.test(line) || /^\s+at /.test(line));
}
