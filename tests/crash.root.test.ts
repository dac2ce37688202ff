import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { usualCgroupDriver } from '@gantry/engine/host/cgroups/cgroup-driver.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { randomFrom } from './attack/random.ts';

/** How often the daemon is killed; more by hand: `GANTRY_CRASHES=1000 node --test tests/crash.root.test.ts`. */
const CRASHES = Number(process.env.GANTRY_CRASHES ?? 50);
const SEED = Number(process.env.GANTRY_CRASH_SEED ?? Date.now() % 1_000_000);
const WORKERS = 4;
/** A round has so many answers, however long they take, and then some time for what is under way. */
const MAX_ANSWERS = 12;
const MAX_EXTRA_MS = 50;
/** A parent of this test's own: everything below it is of this test. */
const BY_SYSTEMD = usualCgroupDriver() === 'systemd';
const CGROUP_PARENT = BY_SYSTEMD ? `gantrycrash${process.pid}.slice` : `/gantry-crash-${process.pid}`;
const COUNT = 'i=0; while :; do echo $i; i=$((i+1)); usleep 5000; done';

/** Changes that an answer acknowledged. Requests without an answer are in doubt, and not in here. */
class Promises {
  /** Containers that were created, and what they have to show. */
  readonly containers = new Map<string, { exitCode?: number }>();
  readonly removed = new Set<string>();
  readonly volumes = new Set<string>();
  readonly images = new Set<string>();
  readonly removedImages = new Set<string>();
  #answers = 0;
  readonly #waiting: (readonly [answers: number, tell: () => void])[] = [];

  answered(): void {
    this.#answers += 1;
    for (const [answers, tell] of this.#waiting) if (answers <= this.#answers) tell();
  }

  async after(answers: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push([answers, resolve]);
    if (answers > 0) await promise;
  }
}

type Counts = Record<
  'kills' | 'answers' | 'containers' | 'exits' | 'execs' | 'volumes' | 'images' | 'removals' | 'followed' | 'untagged',
  number
>;

test(`nothing is lost when the daemon is killed ${CRASHES} times while it works`, async (t) => {
  const random = randomFrom(SEED);
  const counts: Counts = {
    kills: 0,
    answers: 0,
    containers: 0,
    exits: 0,
    execs: 0,
    volumes: 0,
    images: 0,
    removals: 0,
    followed: 0,
    untagged: 0,
  };
  t.diagnostic(`GANTRY_CRASH_SEED=${SEED}`);
  await using engine = await TestEngine.start();
  const bare = belongings(engine);
  const steady = await Steady.start(engine);
  let slowestStart = 0;

  for (let round = 0; round < CRASHES; round += 1) {
    const promises = new Promises();
    const clients = Array.from(
      { length: WORKERS },
      (_, index) => new Worker(engine, promises, counts, random, `r${round}w${index}`),
    );
    const working = Promise.all(clients.map(async (client) => await client.untilCut()));
    working.catch(() => undefined); // it is awaited below
    await Promise.race([promises.after(Math.floor(random() * MAX_ANSWERS)), working]);
    await setTimeout(random() * MAX_EXTRA_MS);
    await engine.kill('SIGKILL');
    await working;
    const begun = performance.now();
    await engine.startAgain();
    slowestStart = Math.max(slowestStart, performance.now() - begun);
    counts.kills += 1;

    await steady.isUntouched();
    await areKept(engine, promises, counts);
    await clear(engine, steady);
  }

  const lines = await steady.lines();
  await clear(engine);
  await engine.kill('SIGTERM');
  // A namespace that somebody still holds would show its link here.
  await settles(async () => (await engine.onHost(['ip', '-o', 'link'])).trim().split('\n').slice(1));
  if (BY_SYSTEMD) await settles(() => globSync(`/sys/fs/cgroup/${CGROUP_PARENT}/*.scope/`));
  else assert.deepEqual(cgroupsLeft(), []);
  await engine.startAgain();
  assert.deepEqual(filesLeft(engine), []);
  await settles(() => ['layers', 'writable'].flatMap((name) => readdirSync(join(engine.dataRoot, name, '.trash'))));
  assert.deepEqual(belongings(engine), bare);
  assert.equal(await rulesOf(engine), '', 'a rule for a port that is not published');
  t.diagnostic(`${JSON.stringify({ ...counts, lines })}, slowest start ${slowestStart.toFixed(0)} ms`);
});

/** Containers that run through all of it. */
class Steady {
  readonly #engine: TestEngine;
  readonly #counter: string;
  readonly #others: readonly string[];
  readonly #before = new Map<string, [number, string]>();

  private constructor(engine: TestEngine, counter: string, others: readonly string[]) {
    this.#engine = engine;
    this.#counter = counter;
    this.#others = others;
  }

  static async start(engine: TestEngine): Promise<Steady> {
    const HostConfig = { CgroupParent: CGROUP_PARENT };
    const counter = await engine.run(['sh', '-c', COUNT], { HostConfig }, 'steady-counter');
    const stubborn = await engine.run(['sleep', '100000'], { OpenStdin: true, HostConfig }, 'steady-sleeper');
    const bindings = { '80/tcp': [{ HostPort: '8765' }] };
    const server = await engine.run(
      ['sh', '-c', 'echo here >/index.html; httpd -f -p 80 -h /'],
      { ExposedPorts: { '80/tcp': {} }, HostConfig: { ...HostConfig, PortBindings: bindings } },
      'steady-server',
    );
    const steady = new Steady(engine, counter, [stubborn, server]);
    for (const id of steady.ids) steady.#before.set(id, await steady.#identity(id));
    return steady;
  }

  get ids(): readonly string[] {
    return [this.#counter, ...this.#others];
  }

  async isUntouched(): Promise<void> {
    for (const id of this.ids) assert.deepEqual(await this.#identity(id), this.#before.get(id));
  }

  /** Ends the counter; every line has to be in its log, once and in order. Returns how many there are. */
  async lines(): Promise<number> {
    assert.equal(await this.#engine.fetchText(8765), 'here\n');
    await this.#engine.post(`/containers/${this.#counter}/kill`);
    const lines = (await this.#engine.output(this.#counter)).stdout.split('\n');
    lines.pop();
    assert.deepEqual(
      lines,
      Array.from(lines, (_, number) => String(number)),
    );
    return lines.length;
  }

  async #identity(id: string): Promise<[number, string]> {
    const { State } = (await this.#engine.get<Inspect>(`/containers/${id}/json`)).body;
    assert.equal(State.Running, true, `${id} runs`);
    process.kill(State.Pid, 0);
    return [State.Pid, State.StartedAt];
  }
}

/** One client: it works until its connection breaks, and writes down what it was answered. */
class Worker {
  readonly #engine: TestEngine;
  readonly #promises: Promises;
  readonly #counts: Counts;
  readonly #random: () => number;
  readonly #prefix: string;
  #number = 0;

  constructor(engine: TestEngine, promises: Promises, counts: Counts, random: () => number, prefix: string) {
    this.#engine = engine;
    this.#promises = promises;
    this.#counts = counts;
    this.#random = random;
    this.#prefix = prefix;
  }

  async untilCut(): Promise<void> {
    const jobs: ((name: string) => Promise<void>)[] = [
      async (name) => await this.#wholeLife(name),
      async (name) => await this.#leavesAnExit(name),
      async (name) => await this.#execs(name),
      async (name) => await this.#stays(name),
      async (name) => await this.#volume(name),
      async (name) => await this.#image(name),
      async (name) => await this.#port(name),
      async (name) => await this.#follows(name),
      async (name) => await this.#dropsImage(name),
    ];
    try {
      for (;;) {
        this.#number += 1;
        const job = jobs[Math.floor(this.#random() * jobs.length)]!;
        await job(`${this.#prefix}n${this.#number}`);
      }
    } catch (error) {
      if (!isCut(error)) throw error;
    }
  }

  async #wholeLife(name: string): Promise<void> {
    await this.#create(name, ['sh', '-c', 'echo out; exit 7']);
    await this.#ask('POST', `/containers/${name}/start`, 204);
    const { body } = await this.#ask('POST', `/containers/${name}/wait`, 200);
    assert.deepEqual(body, { StatusCode: 7 });
    await this.#remove(name);
  }

  async #leavesAnExit(name: string): Promise<void> {
    const exitCode = Math.floor(this.#random() * 200);
    await this.#create(name, ['sh', '-c', `usleep ${Math.floor(this.#random() * 200_000)}; exit ${exitCode}`]);
    await this.#ask('POST', `/containers/${name}/start`, 204);
    this.#promises.containers.set(name, { exitCode });
  }

  async #execs(name: string): Promise<void> {
    await this.#create(name, ['sleep', '1000']);
    await this.#ask('POST', `/containers/${name}/start`, 204);
    const { body } = await this.#ask('POST', `/containers/${name}/exec`, 201, { Cmd: ['true'], AttachStdout: true });
    const { Id } = body as { Id: string };
    await this.#ask('POST', `/exec/${Id}/start`, 200, { Detach: false, Tty: false });
    const inspected = (await this.#ask('GET', `/exec/${Id}/json`, 200)).body as { ExitCode: number };
    assert.equal(inspected.ExitCode, 0);
    this.#counts.execs += 1;
    await this.#ask('POST', `/containers/${name}/pause`, 204);
    await this.#ask('POST', `/containers/${name}/unpause`, 204);
    await this.#ask('POST', `/containers/${name}/stop?t=0`, 204);
    await this.#remove(name);
  }

  async #stays(name: string): Promise<void> {
    await this.#create(name, ['sleep', '1000']);
    this.#promises.containers.delete(name); // in doubt while it gets another name
    await this.#ask('POST', `/containers/${name}/rename?name=${name}-renamed`, 204);
    this.#promises.containers.set(`${name}-renamed`, {});
  }

  async #volume(name: string): Promise<void> {
    await this.#ask('POST', '/volumes/create', 201, { Name: name });
    this.#promises.volumes.add(name);
    await this.#create(`${name}c`, ['sh', '-c', 'echo kept >/v/file'], { Binds: [`${name}:/v`] });
    await this.#ask('POST', `/containers/${name}c/start`, 204);
    this.#promises.containers.set(`${name}c`, { exitCode: 0 });
    this.#counts.volumes += 1;
  }

  async #image(name: string): Promise<void> {
    const archive = new TarWriter().add({ name: 'hello', content: name }).end();
    await this.#ask('POST', `/images/create?fromSrc=-&repo=crash&tag=${name}`, 200, archive);
    this.#promises.images.add(`crash:${name}`);
    this.#counts.images += 1;
  }

  async #port(name: string): Promise<void> {
    await this.#create(name, ['sleep', '1000'], { PortBindings: { '80/tcp': [{ HostPort: '' }] } });
    await this.#ask('POST', `/containers/${name}/start`, 204);
    await this.#ask('POST', `/containers/${name}/kill`, 204);
    await this.#remove(name);
  }

  /** Two that listen to one container: by its log from the first line on, and by an attach from now on. */
  async #follows(name: string): Promise<void> {
    await this.#create(name, ['sh', '-c', COUNT]);
    await this.#ask('POST', `/containers/${name}/start`, 204);
    const heard = await Promise.all([
      this.#listen('GET', `/containers/${name}/logs?stdout=1&follow=1`),
      this.#listen('POST', `/containers/${name}/attach?stream=1&stdout=1`),
    ]);
    assert.equal(heard[0][0], 0);
    for (const numbers of heard) {
      for (const [index, number] of numbers.entries()) assert.equal(number, numbers[0]! + index);
      this.#counts.followed += numbers.length;
    }
    await this.#remove(name);
  }

  /** The first 10 numbers of a stream, each in a frame of its own; then the client hangs up. */
  async #listen(method: string, path: string): Promise<number[]> {
    const response = await this.#engine.open(method, path);
    assert.equal(response.statusCode, 200);
    let bytes = Buffer.alloc(0);
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes = Buffer.concat([bytes, chunk]);
      const numbers = wholeFrames(bytes).map(Number);
      if (numbers.length >= 10) return numbers; // which destroys the response
    }
    throw Object.assign(new Error(`${path} has ended`), { code: 'ECONNRESET' });
  }

  async #dropsImage(name: string): Promise<void> {
    await this.#image(name);
    await this.#ask('POST', `/images/crash:${name}/tag?repo=again&tag=${name}`, 201);
    this.#promises.images.add(`again:${name}`);
    for (const image of [`crash:${name}`, `again:${name}`]) {
      this.#promises.images.delete(image);
      await this.#ask('DELETE', `/images/${image}`, 200);
      this.#promises.removedImages.add(image);
      this.#counts.untagged += 1;
    }
  }

  async #create(name: string, command: readonly string[], settings: object = {}): Promise<void> {
    const HostConfig = { CgroupParent: CGROUP_PARENT, ...settings };
    const body = { Image: 'busybox', Cmd: command, ExposedPorts: { '80/tcp': {} }, HostConfig };
    await this.#ask('POST', `/containers/create?name=${name}`, 201, body);
    this.#promises.containers.set(name, {});
    this.#counts.containers += 1;
  }

  async #remove(name: string): Promise<void> {
    this.#promises.containers.delete(name);
    await this.#ask('DELETE', `/containers/${name}?force=1&v=1`, 204);
    this.#promises.removed.add(name);
    this.#counts.removals += 1;
  }

  async #ask(method: string, path: string, status: number, body?: unknown): Promise<{ body: unknown }> {
    const answer = await this.#engine.request(method, path, { body });
    assert.equal(answer.status, status, `${method} ${path}: ${answer.raw.toString().slice(0, 500)}`);
    this.#counts.answers += 1;
    this.#promises.answered();
    return answer;
  }
}

function isCut(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ENOENT'].includes(code ?? '');
}

async function areKept(engine: TestEngine, promises: Promises, counts: Counts): Promise<void> {
  for (const [name, { exitCode }] of promises.containers) {
    if (exitCode !== undefined) {
      assert.equal(await engine.wait(name), exitCode, name);
      counts.exits += 1;
    }
    const { status, body } = await engine.get<Inspect>(`/containers/${name}/json`);
    assert.equal(status, 200, `${name} is there`);
    if (exitCode !== undefined) assert.ok(body.State.FinishedAt >= body.State.StartedAt, `${name} has its times`);
  }
  for (const name of promises.removed) assert.equal((await engine.get(`/containers/${name}/json`)).status, 404, name);
  for (const name of promises.volumes) assert.equal((await engine.get(`/volumes/${name}`)).status, 200, name);
  for (const name of promises.images) assert.equal((await engine.get(`/images/${name}/json`)).status, 200, name);
  for (const name of promises.removedImages) assert.equal((await engine.get(`/images/${name}/json`)).status, 404, name);
}

/** Removes everything, also what was in doubt: it has to be in one of the states that a container can have. */
async function clear(engine: TestEngine, steady?: Steady): Promise<void> {
  const { body: containers } = await engine.get<{ Id: string; State: string }[]>('/containers/json?all=1');
  for (const { Id, State } of containers) {
    assert.ok(['created', 'running', 'paused', 'exited'].includes(State), State);
    if (steady?.ids.includes(Id)) continue;
    assert.equal((await engine.delete(`/containers/${Id}?force=1&v=1`)).status, 204);
  }
  const { body } = await engine.get<{ Volumes: { Name: string }[] | null }>('/volumes');
  for (const { Name } of body.Volumes ?? []) assert.equal((await engine.delete(`/volumes/${Name}`)).status, 204);
  const { body: images } = await engine.get<{ Id: string; RepoTags: string[] | null }[]>('/images/json');
  for (const { Id, RepoTags } of images) {
    if (RepoTags?.some((tag) => tag.startsWith('busybox'))) continue;
    assert.equal((await engine.delete(`/images/${Id}?force=1`)).status, 200);
  }
}

function filesLeft(engine: TestEngine): string[] {
  const folders = ['data/containers', 'data/writable', 'data/volumes', 'exec/shims', 'exec/runtime'];
  return folders.flatMap((folder) => {
    const path = join(engine.directory, folder);
    const names = existsSync(path) ? readdirSync(path).filter((name) => name !== '.trash') : [];
    return names.map((name) => join(folder, name));
  });
}

/** Layers, blobs, and the mounts that the daemon sees. */
function belongings(engine: TestEngine): Record<string, string[]> {
  const folders = ['layers', 'blobs/sha256', 'blobs/skeletons', 'blobs/arriving'];
  const mounts = readFileSync(`/proc/${engine.pid}/mountinfo`, 'utf8').split('\n');
  return {
    ...Object.fromEntries(folders.map((name) => [name, filesOf(join(engine.dataRoot, name))])),
    mounts: mounts.map((line) => line.split(' ')[4] ?? '').filter((target) => target.includes(engine.directory)),
  };
}

/** `init` is the layer that all containers share, made with the first one. */
function filesOf(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name !== 'init')
    .toSorted();
}

/** The parents stay, as with every runtime; each of their children was a container's. */
function cgroupsLeft(): string[] {
  const parents = globSync([`/sys/fs/cgroup${CGROUP_PARENT}/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/`]);
  assert.ok(parents.length > 0);
  const left = parents.flatMap((parent) => globSync(`${parent}/*/`));
  if (left.length === 0) for (const parent of parents) rmdirSync(parent);
  return left;
}

/** Waits until nothing is left of what the kernel, or the daemon in the background, removes in its own time. */
async function settles(left: () => readonly string[] | Promise<readonly string[]>): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const found = await left();
    if (found.length === 0) return;
    assert.ok(performance.now() < deadline, found.join('\n'));
    await setTimeout(20);
  }
}

/** The lines of all frames that are complete. */
function wholeFrames(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const end = at + 8 + bytes.readUInt32BE(at + 4);
    if (end > bytes.length) break;
    lines.push(
      ...bytes
        .toString('utf8', at + 8, end)
        .trimEnd()
        .split('\n'),
    );
    at = end;
  }
  return lines;
}

/** The elements of all maps and sets in our table that name a container's address. */
async function rulesOf(engine: TestEngine): Promise<string> {
  const rules = await engine.onHost(['nft', 'list', 'ruleset']);
  return rules
    .split('\n')
    .filter((line) => /elements = /.test(line) && / : /.test(line))
    .join('\n');
}
