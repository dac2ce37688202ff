import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { constants as os } from 'node:os';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';

import { EngineError, hasCode } from '../lib/errors.ts';
import { parseExit, readExit, type ExitStatus } from './exit-status.ts';
import { LineReader } from './line-reader.ts';
import { startFailure } from './start-failure.ts';

const PROGRAM = process.env.GANTRY_SHIM ?? join(import.meta.dirname, '../../build/gantry-shim');

/** The overlay that the shim mounts. Lower folders may be relative to `base`, topmost first. */
export type RootFs = Readonly<{ base: string; lower: readonly string[]; upper: string; work: string; target: string }>;

export type ShimOptions = Readonly<{
  /** Of the container, or of the exec. */
  id: string;
  /** Made by the caller. config.json (or process.json of an exec) has to be there before `start`. */
  directory: string;
  runtime: Readonly<{ path: string; root: string }>;
  mode:
    | Readonly<{
        kind: 'container';
        rootfs?: RootFs;
        /** A descriptor; `/proc/<pid>/fd/3` in the shim. */ netns?: number;
      }>
    | Readonly<{ kind: 'exec'; container: string }>;
  tty: boolean;
  openStdin: boolean;
  stdinOnce: boolean;
  log: Readonly<{ driver: 'json-file'; path: string; maxBytes?: number; maxFiles?: number } | { driver: 'none' }>;
  /** Inside the hierarchies, such as `/gantry/<id>`: watched for out-of-memory kills. */
  cgroupPath?: string;
}>;

const PHASES = new Set(['waiting', 'starting', 'started', 'failed', 'exited']);

export type Started = Readonly<{ pid: number; startedAt: Temporal.Instant }>;
export type AttachOptions = Readonly<{
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  logs: boolean;
  stream: boolean;
}>;

/** The shim died without a status: it was killed, or the machine was. */
export class ShimLost extends Error {
  override readonly name = 'ShimLost';
}

/** The process that is the parent of one container or exec, and our connection to it. */
export class Shim {
  readonly pid: number;
  readonly directory: string;
  /** Resolves when the exit has been written down; rejects with `ShimLost`. */
  readonly exited: Promise<ExitStatus>;
  /** Resolves when the runtime has removed the container: only then may its id be started again. */
  readonly gone: Promise<void>;

  /** What the shim said last of its process: `waiting` for the start, `starting`, `started`, `failed` or `exited`. */
  get phase(): string {
    return this.#phase;
  }

  #phase = '';
  readonly #control: Socket;
  readonly #kind: 'container' | 'exec';
  readonly #exited = Promise.withResolvers<ExitStatus>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<Started>();
  readonly #answers: { resolve: (errno: number) => void; reject: (error: Error) => void }[] = [];
  readonly #oomCallbacks: (() => void)[] = [];
  readonly #told = Promise.withResolvers<void>();
  #ended = false;
  #wasLost = false;

  private constructor(pid: number, directory: string, kind: 'container' | 'exec', control: Socket, early: string) {
    this.pid = pid;
    this.directory = directory;
    this.#kind = kind;
    this.#control = control;
    this.exited = this.#exited.promise;
    this.gone = this.#gone.promise;
    // Not everybody waits for each of them.
    this.exited.catch(() => undefined);
    this.#started.promise.catch(() => undefined);
    const lines = new LineReader((line) => this.#hear(line));
    control.on('data', (chunk: Buffer) => lines.push(chunk.toString('latin1')));
    control.on('end', () => control.destroy());
    control.on('error', () => control.destroy());
    control.on('close', () => this.#lost());
    lines.push(early);
    control.resume();
  }

  /** Starts a shim; resolves when it listens. The container or process itself is not started yet. */
  static async spawn(options: ShimOptions): Promise<Shim> {
    const netns = options.mode.kind === 'container' ? options.mode.netns : undefined;
    const child = spawn(PROGRAM, argumentsOf(options), {
      detached: true, // a signal for the daemon's group is none for the containers
      stdio: ['ignore', 'pipe', 'pipe', ...(netns === undefined ? [] : [netns])],
    });
    try {
      await ready(child);
    } finally {
      child.unref();
      child.stdout?.destroy();
      child.stderr?.destroy();
    }
    return await Shim.#open(child.pid!, options.directory, options.mode.kind);
  }

  /** Finds the shim of an earlier daemon again; undefined when none is there any more. */
  static async reconnect(directory: string, kind: 'container' | 'exec' = 'container'): Promise<Shim | undefined> {
    try {
      const pid = Number(readFileSync(join(directory, 'shim.pid'), 'utf8'));
      return await Shim.#open(pid, directory, kind);
    } catch (error) {
      if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED') || error instanceof ShimLost) return undefined;
      throw error;
    }
  }

  /** What a shim that has left wrote down. */
  static readStatus(directory: string): ExitStatus | undefined {
    return readExit(directory);
  }

  static async #open(pid: number, directory: string, kind: 'container' | 'exec'): Promise<Shim> {
    const { socket, rest } = await handshake(directory, 'control');
    const shim = new Shim(pid, directory, kind, socket, rest);
    await shim.#told.promise;
    return shim;
  }

  /** Runs the runtime. Throws `StartFailed` with what it said. */
  async start(): Promise<Started> {
    await this.#command('start');
    return await this.#started.promise;
  }

  /** The process, as soon as it runs: of use after `reconnect`. */
  get started(): Promise<Started> {
    return this.#started.promise;
  }

  /**
   * A stream of the output: raw with a terminal, 8-byte frames without. What is written to it is stdin; ending it ends
   * stdin only. It comes paused.
   */
  async attach({ stdin, stdout, stderr, logs, stream }: AttachOptions): Promise<Socket> {
    const flags = Object.entries({ stdin, stdout, stderr, logs, stream }).map(([name, on]) => ` ${name}=${on ? 1 : 0}`);
    const { socket, rest } = await handshake(this.directory, `attach${flags.join('')}`);
    if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
    return socket;
  }

  /** Sends a signal to the first process. Throws a conflict when it has ended. */
  async signal(signal: number): Promise<void> {
    await this.#command(`signal ${signal}`);
  }

  /** In characters. Before the start it is the terminal's first size. */
  async resize(width: number, height: number): Promise<void> {
    await this.#command(`resize ${width} ${height}`);
  }

  /** It ended without a status: its process may still be there. */
  get wasLost(): boolean {
    return this.#wasLost;
  }

  onOom(callback: () => void): void {
    this.#oomCallbacks.push(callback);
  }

  /** The exit is recorded: the shim leaves as soon as its clients have everything. */
  release(): void {
    this.#ended = true;
    if (!this.#control.destroyed) this.#control.write('release\n');
  }

  /** Ends a shim whose process was not started, or whose start hangs; resolves when it has left. */
  async abandon(): Promise<void> {
    if (this.#control.destroyed) return;
    const closed = new Promise<void>((resolve) => void this.#control.once('close', () => resolve()));
    this.#control.end('abandon\n');
    await closed;
  }

  async #command(text: string): Promise<void> {
    if (this.#control.destroyed) throw new ShimLost('the shim has gone');
    const answer = Promise.withResolvers<number>();
    this.#answers.push(answer);
    this.#control.write(`${text}\n`);
    const errno = await answer.promise;
    if (errno !== 0) throw new EngineError('conflict', `${text.split(' ')[0]}: ${getSystemErrorName(-errno)}`);
  }

  #hear(line: string): void {
    const [word = '', first = '', second = ''] = line.split(' ');
    if (PHASES.has(word)) this.#enter(word);
    if (word === 'done') this.#answers.shift()?.resolve(Number(first));
    else if (word === 'started') {
      this.#started.resolve({ pid: Number(first), startedAt: new Temporal.Instant(BigInt(second)) });
    } else if (word === 'failed') this.#started.reject(startFailure(this.directory, this.#kind));
    else if (word === 'oom') for (const callback of this.#oomCallbacks) callback();
    else if (word === 'gone') this.#gone.resolve();
    else if (word === 'exited') {
      const status = parseExit(line);
      if (status !== undefined) this.#exited.resolve(status);
    }
  }

  #enter(phase: string): void {
    this.#phase = phase;
    this.#told.resolve();
  }

  #lost(): void {
    this.#told.resolve();
    const status = readExit(this.directory);
    if (status !== undefined) this.#exited.resolve(status);
    else this.#wasLost = true;
    const lost = new ShimLost('the shim has gone');
    this.#exited.reject(lost);
    this.#started.reject(lost);
    this.#gone.resolve();
    for (const { resolve, reject } of this.#answers.splice(0)) {
      if (this.#ended || status !== undefined) resolve(os.errno.ESRCH);
      else reject(lost);
    }
  }
}

async function ready(child: ChildProcess): Promise<void> {
  let said = '';
  let complaint = '';
  child.stdout!.on('data', (chunk: Buffer) => (said += chunk.toString()));
  child.stderr!.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    child.stdout!.once('data', () => resolve());
    child.once('error', reject);
    child.once('close', () => reject(new Error(`the shim did not start: ${complaint.trim()}`)));
  });
  if (said !== 'ready\n') throw new Error(`the shim did not start: ${said}${complaint}`);
}

/**
 * Opens a connection of the named kind. What came behind the greeting is in `rest`.
 *
 * The socket is addressed through a descriptor of its folder, because a socket's path is limited to 107 bytes.
 */
async function handshake(directory: string, kind: string): Promise<{ socket: Socket; rest: string }> {
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const socket = connect({ path: `/proc/self/fd/${folder}/shim.sock`, allowHalfOpen: true });
  try {
    await once(socket, 'connect');
  } finally {
    closeSync(folder);
  }
  socket.write(`GANTRY 1 ${kind}\n`);
  const outcome = Promise.withResolvers<{ socket: Socket; rest: string }>();
  let said = '';
  const refuse = (): void => outcome.reject(new ShimLost('the shim has gone'));
  const read = (chunk: Buffer): void => {
    said += chunk.toString('latin1');
    const end = said.indexOf('\n');
    if (end < 0) return;
    socket.off('data', read).off('close', refuse).off('error', refuse).pause();
    if (said.startsWith('ok ')) outcome.resolve({ socket, rest: said.slice(end + 1) });
    else outcome.reject(new Error(`the shim refused: ${said.slice(0, end)}`));
  };
  socket.on('data', read).on('close', refuse).on('error', refuse);
  return await outcome.promise;
}

function argumentsOf(options: ShimOptions): string[] {
  const { mode, log } = options;
  const list = ['--id', options.id, '--directory', options.directory];
  list.push('--runtime', options.runtime.path, '--runtime-root', options.runtime.root);
  if (mode.kind === 'exec') list.push('--exec', mode.container);
  if (mode.kind === 'container' && mode.rootfs !== undefined) {
    const { base, lower, upper, work, target } = mode.rootfs;
    const overlay = `lowerdir=${lower.join(':')},upperdir=${upper},workdir=${work}`;
    list.push('--rootfs-base', base, '--rootfs-options', overlay, '--rootfs-target', target);
  }
  if (options.tty) list.push('--tty');
  if (options.openStdin) list.push('--stdin');
  if (options.stdinOnce) list.push('--stdin-once');
  if (log.driver === 'json-file') {
    list.push('--log', log.path);
    if (log.maxBytes !== undefined) list.push('--log-max-size', String(log.maxBytes));
    if (log.maxFiles !== undefined) list.push('--log-max-files', String(log.maxFiles));
  }
  if (options.cgroupPath !== undefined) list.push('--cgroup', options.cgroupPath);
  return list;
}
