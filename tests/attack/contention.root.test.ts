import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { ApiError, ConnectionError } from '@gantry/client/connection.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { agree, CGROUP_PARENT } from './agreement.ts';
import { Dice } from './random.ts';

/** Longer by hand: `GANTRY_CONTENTION_SECONDS=600 ./gantry test tests/attack/contention.root.test.ts`. */
const SECONDS = Number(process.env.GANTRY_CONTENTION_SECONDS ?? 8);
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 12;
const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
/** Refusals of an operation in the wrong state; at 1.24 some have the status 500. */
const WRONG_STATE =
  /is not running|is already paused|is not paused|is paused|is already stopped|is restarting|is starting|is removing|removal of container|cannot start a paused container|Container \S+ is (stopping|exited|running)|cannot become|the process does not run|cannot be reached|is already in use/;

type Spec = Readonly<{ Cmd: string[]; [key: string]: unknown }>;

/** It says the lines of a run in order, from 0, and obeys the stop signal. */
const COUNT = 'trap "exit 0" TERM; i=0; while :; do echo $i; i=$((i+1)); usleep 3000; done';
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };
const FILE = new TarWriter().add({ name: 'put/', type: 'directory' }).add({ name: 'put/file', content: 'put' }).end();
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

/** Answers that the clients of one test have met. */
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
      async () => await this.#archive(`${path}/archive?path=/etc`),
      async () => await this.#archive(`${path}/export`),
      async () =>
        this.#tell('put', await this.engine.request('PUT', `${path}/archive?path=/tmp`, { ...TAR, body: FILE })),
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
      this.#tell(path, await this.engine.get(path));
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
    const wrong = clients.refusals.filter(({ message }) => !WRONG_STATE.test(message));
    assert.deepEqual(wrong, [], 'nothing is refused but what is in another state');
    await agree(engine, t);
  });
}

async function killNowAndThen(engine: TestEngine, dice: Dice, until: number): Promise<void> {
  while (performance.now() < until) {
    await setTimeout(1000 + dice.upTo(3000));
    await engine.kill();
    await engine.startAgain();
  }
}
