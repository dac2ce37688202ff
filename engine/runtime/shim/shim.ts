import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as os } from 'node:os';
import { getSystemErrorName } from 'node:util';

import { connectedSockets, reapWhenEnded, spawnInSession } from '../../host/spawn.ts';
import { EngineError } from '../../lib/errors.ts';
import { parseExit, readExit, type ExitStatus } from '../exit-status.ts';
import { LineReader } from '../line-reader.ts';
import { Probe, type ProbeEnd } from '../probe.ts';
import type { ReusedBuffers } from '../reused-buffers.ts';
import { startFailure } from '../start-failure.ts';
import { greeting, openConnection, ShimLost, type Greeted } from './handshake.ts';
import { shimArguments, type ShimOptions } from './shim-options.ts';
import { SHIM_ENVIRONMENT, SHIM_PROGRAM } from './shim-program.ts';

export { ShimLost } from './handshake.ts';
export type { RootFs, ShimOptions } from './shim-options.ts';

/** The descriptors that a new shim inherits: the network namespace and its first control connection. */
const [NETNS_FD, CONTROL_FD] = [3, 4];

type Kind = 'container' | 'exec';
type Answer = { resolve: (errno: number) => void; reject: (error: Error) => void };

/** The states of a shim's process. */
export type Phase = 'waiting' | 'starting' | 'started' | 'failed' | 'exited';
const PHASES: ReadonlySet<string> = new Set<Phase>(['waiting', 'starting', 'started', 'failed', 'exited']);

export type Started = Readonly<{ pid: number; startedAt: Temporal.Instant }>;

type ProbeOptions = Readonly<{ timeoutMs: number; oomScoreAdj: number }>;

export type AttachOptions = Readonly<{
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  logs: boolean;
  stream: boolean;
}>;

/** The process that is the parent of one container or exec, and our connection to it. */
export class Shim {
  readonly pid: number;
  readonly directory: string;
  /** Resolves when the exit has been written down; rejects with `ShimLost`. */
  readonly exited: Promise<ExitStatus>;
  /**
   * Resolves when the runtime has removed the container and the shim has left its folder (it may still hand out output
   * to slow clients): only then may the folder be removed, and the id be started again.
   */
  readonly gone: Promise<void>;

  #phase: Phase | undefined;
  readonly #control: Socket;
  readonly #kind: Kind;
  readonly #told = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<Started>();
  readonly #exited = Promise.withResolvers<ExitStatus>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #answers: Answer[] = [];
  readonly #oomCallbacks: (() => void)[] = [];
  #probe: Probe | undefined;
  #oomKills = 0;
  #wasLost = false;

  private constructor({ socket, pid }: Greeted, directory: string, kind: Kind) {
    this.pid = pid;
    this.directory = directory;
    this.#kind = kind;
    this.#control = socket;
    this.exited = this.#exited.promise;
    this.gone = this.#gone.promise;
    // Avoids unhandled rejections, because not every caller awaits each of them.
    this.exited.catch(() => undefined);
    this.#started.promise.catch(() => undefined);
    const lines = new LineReader((line) => this.#hear(line));
    socket.on('data', (chunk: Buffer) => {
      try {
        lines.push(chunk.toString());
      } catch (error) {
        // Not a line of the protocol: the peer is not a shim of ours.
        socket.destroy(error instanceof Error ? error : undefined);
      }
    });
    socket.on('end', () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#lost());
    socket.resume();
  }

  /** Spawns a shim; resolves when it listens. The container or process is not started yet. */
  static async spawn(options: ShimOptions): Promise<Shim> {
    const netns = options.mode.kind === 'container' ? options.mode.netns : undefined;
    const [ours, theirs] = connectedSockets();
    const socket = new Socket({ fd: ours, allowHalfOpen: true });
    try {
      const descriptors = new Map([[CONTROL_FD, theirs]]);
      if (netns !== undefined) descriptors.set(NETNS_FD, netns);
      const pid = spawnInSession(SHIM_PROGRAM, shimArguments(options), SHIM_ENVIRONMENT, descriptors);
      socket.once('close', () => reapWhenEnded(pid));
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      closeSync(theirs);
    }
    return await Shim.#from(await greeting(socket), options.directory, options.mode.kind);
  }

  /** Reconnects to the shim of an earlier daemon; undefined if it is gone. */
  static async reconnect(directory: string, kind: Kind = 'container'): Promise<Shim | undefined> {
    try {
      return await Shim.#from(await openConnection(directory, 'control'), directory, kind);
    } catch (error) {
      if (error instanceof ShimLost) return undefined;
      throw error;
    }
  }

  static async #from(greeted: Greeted, directory: string, kind: Kind): Promise<Shim> {
    const shim = new Shim(greeted, directory, kind);
    await shim.#told.promise;
    return shim;
  }

  /** The exit status that an ended shim has written. */
  static readStatus(directory: string): ExitStatus | undefined {
    return readExit(directory);
  }

  /** The last reported state; undefined if the shim died before its first report. */
  get phase(): Phase | undefined {
    return this.#phase;
  }

  /** Resolves when the process runs; for use after `reconnect`. Rejects with `StartFailed` or `ShimLost`. */
  get started(): Promise<Started> {
    return this.#started.promise;
  }

  /** The shim ended without a status; its process may still run. */
  get wasLost(): boolean {
    return this.#wasLost;
  }

  /** Runs the runtime. Throws `StartFailed` with its message, after everything of the attempt is cleaned up. */
  async start(): Promise<Started> {
    await this.#command('start');
    return await this.#started.promise;
  }

  /**
   * A stream of the output: raw with a terminal, 8-byte frames without. Writes go to stdin; ending it ends only stdin.
   * It is paused at first.
   */
  async attach({ stdin, stdout, stderr, logs, stream }: AttachOptions, buffers?: ReusedBuffers): Promise<Socket> {
    const flags = Object.entries({ stdin, stdout, stderr, logs, stream }).map(([name, on]) => ` ${name}=${on ? 1 : 0}`);
    const { socket } = await openConnection(this.directory, `attach${flags.join('')}`, buffers);
    // The shim keeps its side open until we close ours, so that no output is lost.
    socket.once('end', () => socket.end());
    return socket;
  }

  /** Sends a signal to the first process. Throws a conflict when it does not run. */
  async signal(signal: number): Promise<void> {
    await this.#command(`signal ${signal}`);
  }

  /** In characters. Before the start it is the terminal's first size. */
  async resize(width: number, height: number): Promise<void> {
    await this.#command(`resize ${width} ${height}`);
  }

  /**
   * Runs `probe.json` of the folder as a second process; one at a time. `late` is called when it takes longer than the
   * timeout: then it is ended, and this resolves when it is. Throws `StartFailed`, `ShimLost`, and `conflict` when the
   * container does not run or another check has not ended.
   */
  async probe({ timeoutMs, oomScoreAdj }: ProbeOptions, late: () => void): Promise<ProbeEnd> {
    const probe = new Probe(this.directory, late);
    this.#probe = probe;
    probe.ended.promise.catch(() => undefined); // it may be lost before it is awaited
    try {
      await this.#command(`probe ${probe.number} ${Math.ceil(timeoutMs)} ${oomScoreAdj}`);
      return await probe.ended.promise;
    } finally {
      if (this.#probe === probe) this.#probe = undefined;
    }
  }

  /** Kills it with its children; without one, nothing happens. */
  cancelProbe(): void {
    if (!this.#control.destroyed) void this.#ask('cancel-probe').catch(() => 0);
  }

  /** Calls back for each out-of-memory kill in the container's cgroup, past ones included. */
  onOom(callback: () => void): void {
    for (let i = 0; i < this.#oomKills; i += 1) callback();
    this.#oomCallbacks.push(callback);
  }

  /** Tells the shim that the exit is recorded: it ends as soon as its clients have all output. */
  release(): void {
    if (!this.#control.destroyed) this.#control.write('release\n');
  }

  /**
   * Ends the shim in any state: the set-up, the start, or the process with SIGKILL. Resolves when everything is cleaned
   * up, or the shim was lost.
   */
  async end(): Promise<void> {
    if (this.#control.destroyed) return;
    const closed = new Promise<void>((resolve) => void this.#control.once('close', () => resolve()));
    const errno = await this.#ask('abandon').catch(() => 0); // it may be ending already
    if (errno === 0) {
      await closed;
      return;
    }
    await this.#ask(`signal ${os.signals.SIGKILL}`).catch(() => 0);
    await this.gone;
    this.release();
  }

  async #command(text: string): Promise<void> {
    const errno = await this.#ask(text);
    if (errno === 0) return;
    const name = getSystemErrorName(-errno);
    throw new EngineError('conflict', errno === os.errno.ESRCH ? 'the process does not run' : `${text}: ${name}`);
  }

  /** Sends a command; resolves with 0 or an errno. Answers come in the order of the commands. */
  async #ask(text: string): Promise<number> {
    if (this.#control.destroyed) return this.#answerOfLost();
    const answer = Promise.withResolvers<number>();
    this.#answers.push(answer);
    this.#control.write(`${text}\n`);
    return await answer.promise;
  }

  #answerOfLost(): number {
    if (this.#wasLost) throw new ShimLost('the shim has gone');
    return os.errno.ESRCH;
  }

  #hear(line: string): void {
    const [word = '', first = '', second = ''] = line.split(' ');
    if (isPhase(word)) this.#phase = word;
    if (word === 'done') this.#answers.shift()?.resolve(Number(first));
    else if (word === 'started') {
      this.#started.resolve({ pid: Number(first), startedAt: new Temporal.Instant(BigInt(second)) });
    } else if (word === 'failed') {
      this.#started.reject(startFailure(this.directory, this.#kind, line.slice('failed '.length)));
    } else if (word === 'oom') {
      this.#oomKills += 1;
      for (const callback of this.#oomCallbacks) callback();
    } else if (word === 'probed' || word === 'probe-late') this.#probe?.hear(line);
    else if (word === 'gone') this.#gone.resolve();
    else if (word === 'exited') this.#exited.resolve(parseExit(line));
    this.#told.resolve();
  }

  #lost(): void {
    const lost = new ShimLost('the shim has gone');
    const status = readExit(this.directory);
    if (status !== undefined) this.#exited.resolve(status);
    else this.#wasLost = this.#phase !== 'exited' && this.#phase !== 'failed';
    this.#exited.reject(lost);
    this.#started.reject(lost);
    this.#probe?.ended.reject(lost);
    this.#gone.resolve();
    this.#told.resolve();
    for (const { resolve, reject } of this.#answers.splice(0)) {
      if (this.#wasLost) reject(lost);
      else resolve(os.errno.ESRCH);
    }
  }
}

function isPhase(word: string): word is Phase {
  return PHASES.has(word);
}
