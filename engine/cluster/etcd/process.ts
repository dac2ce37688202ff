import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { delimiter, join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { writeWhole } from '../../host/files/write-whole.ts';
import { settlesWithin, sleep, type Clock } from '../../lib/clock.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { DEFERRED_FLAGS, etcdFlags, firstFlags, type EtcdSettings, type FirstStart } from './flags.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'>;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 10_000;
const GRACE_SECONDS = 10;
const CHECK_INTERVAL_MS = 50;

/** A running etcd: ours, or one that outlived the daemon that started it. */
type Running = Readonly<{ pid: number; ended: Promise<void> }>;

/** The program, or a refusal that names the package. */
export function findEtcd(path = process.env.PATH ?? ''): string {
  for (const folder of path.split(delimiter)) {
    const program = join(folder, 'etcd');
    try {
      accessSync(program, constants.X_OK);
      return program;
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'EACCES') && !hasCode(error, 'ENOTDIR')) throw error;
    }
  }
  throw new EngineError('failed', 'etcd is not installed, and a manager needs it: install the package etcd-server');
}

/**
 * The etcd of this node: runs until it is stopped. When it ends by itself it is restarted, after 0.1 s at first and 10 s at
 * most. It outlives the daemon's SIGKILL, and the next daemon takes it over.
 */
export class EtcdProcess {
  readonly #engine: Needs;
  #settings: EtcdSettings;
  #running: Running | undefined;
  #wanted = false;
  #delayMs = FIRST_RETRY_MS;
  #retry: Disposable | undefined;

  constructor(engine: Needs, settings: EtcdSettings) {
    this.#engine = engine;
    this.#settings = settings;
  }

  /** Path of the socket for clients. */
  get socketPath(): string {
    return join(this.#settings.place.run, 'client:0');
  }

  /** The last lines of its log. */
  get said(): string {
    return lastLines(join(this.#settings.place.run, 'log'));
  }

  get pid(): number | undefined {
    return this.#running?.pid;
  }

  /** Takes over one that runs at the same place; else starts one. */
  async start(first?: FirstStart): Promise<void> {
    if (this.#running !== undefined) return;
    const { place } = this.#settings;
    mkdirSync(place.run, { recursive: true, mode: 0o700 });
    mkdirSync(place.data, { recursive: true, mode: 0o700 });
    this.#wanted = true;
    const survivor = this.#survivor();
    if (survivor !== undefined && first === undefined && sameWords(survivor.words, etcdFlags(this.#settings))) {
      this.#engine.log.info({ pid: survivor.pid }, 'etcd has outlived the last daemon and goes on');
      this.#keep(survivor);
      return;
    }
    if (survivor !== undefined) await this.#end(survivor);
    this.#launch(first);
  }

  /** Takes settings for its next start. */
  use(settings: EtcdSettings): void {
    this.#settings = settings;
  }

  /** Ends it, also one that the last daemon started, and does not start it again. */
  async stop(): Promise<void> {
    this.#wanted = false;
    this.#retry?.[Symbol.dispose]();
    const running = this.#running ?? this.#survivor();
    if (running !== undefined) await this.#end(running);
  }

  /** Leaves it running for the next daemon. */
  release(): void {
    this.#wanted = false;
    this.#retry?.[Symbol.dispose]();
  }

  #launch(first?: FirstStart): void {
    const { place } = this.#settings;
    rmSync(this.socketPath, { force: true });
    const log = openSync(join(place.run, 'log'), 'w', 0o600);
    try {
      const words = [...etcdFlags(this.#settings), ...firstFlags(first)];
      const child = spawn(place.program, words, {
        cwd: place.run,
        detached: true,
        stdio: ['ignore', log, log],
        env: {},
      });
      const ended = Promise.withResolvers<void>();
      child.once('exit', () => ended.resolve());
      child.once('error', (error) => {
        this.#engine.log.error({ err: error }, 'etcd could not be started');
        ended.resolve();
      });
      child.unref();
      if (child.pid !== undefined) writeWhole(join(place.run, 'pid'), String(child.pid));
      this.#keep({ pid: child.pid ?? 0, ended: ended.promise });
    } finally {
      closeSync(log);
    }
  }

  /** Watches over it until it ends. */
  #keep(running: Running): void {
    this.#running = running;
    const startedMs = performance.now();
    const again = async (): Promise<void> => {
      await running.ended;
      if (this.#running === running) this.#running = undefined;
      if (!this.#wanted) return;
      const livedMs = performance.now() - startedMs;
      this.#delayMs = livedMs > MAX_RETRY_MS ? FIRST_RETRY_MS : this.#delayMs;
      const { said } = this;
      this.#engine.log.warn({ pid: running.pid, again: this.#delayMs, said }, 'etcd ended, restarting');
      this.#retry = this.#engine.background.after(this.#delayMs, 'start etcd', {}, () => {
        if (this.#wanted) this.#launch();
      });
      this.#delayMs = Math.min(this.#delayMs * 2, MAX_RETRY_MS);
    };
    again().catch((error: unknown) => this.#engine.log.error({ err: error }, 'failed to supervise etcd'));
  }

  async #end({ pid, ended }: Running): Promise<void> {
    kill(pid, 'SIGTERM');
    if (!(await settlesWithin(ended, GRACE_SECONDS, this.#engine.clock))) kill(pid, 'SIGKILL');
    await ended;
  }

  /** A process that the last daemon started here. */
  #survivor(): (Running & { words: string[] }) | undefined {
    const { run, data } = this.#settings.place;
    const path = join(run, 'pid');
    if (!existsSync(path)) return undefined;
    const pid = Number(readFileSync(path, 'utf8'));
    const words = wordsOf(pid);
    if (!words.includes(`--data-dir=${data}`)) return undefined;
    return { pid, words: words.slice(1), ended: endOf(pid, this.socketPath, this.#engine.clock) };
  }
}

function wordsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return [];
    throw error;
  }
}

function sameWords(words: readonly string[], wanted: readonly string[]): boolean {
  return lasting(words) === lasting(wanted);
}

function lasting(words: readonly string[]): string {
  return words.filter((word) => !DEFERRED_FLAGS.test(word)).join('\0');
}

/**
 * The end of a process that is no child of ours: a connection to it closes with it. It is also polled, for the time before
 * it listens, and should it close connections by itself.
 */
async function endOf(pid: number, socketPath: string, clock: Clock): Promise<void> {
  while (isAlive(pid)) {
    await waitForClose(connect(socketPath));
    await sleep(clock, CHECK_INTERVAL_MS);
  }
}

async function waitForClose(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on('error', () => undefined); // 'close' follows
  socket.once('close', () => resolve());
  socket.unref();
  await promise;
}

function isAlive(pid: number): boolean {
  return wordsOf(pid).length > 0;
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

function lastLines(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').slice(-1000) : '';
}
