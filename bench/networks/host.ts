import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';

const execute = promisify(execFile);

/** The machine of an engine, a network namespace, with a foreign host beside it. */
export class Host implements AsyncDisposable {
  static readonly MACHINE = '192.0.2.2';
  readonly api: Api;
  readonly #pid: number;
  readonly #outside: ChildProcess;

  private constructor(api: Api, pid: number, outside: ChildProcess) {
    this.api = api;
    this.#pid = pid;
    this.#outside = outside;
  }

  /** `netns`: how nsenter enters the engine's namespace. */
  static async of(api: Api, netns: string): Promise<Host> {
    const outside = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up; echo; exec sleep 100000'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(outside.stdout, 'data');
    const holder = spawn('nsenter', [netns, 'sh', '-c', 'echo; exec sleep 100000'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(holder.stdout, 'data');
    const host = new Host(api, holder.pid!, outside);
    await host.#connect(holder.pid!);
    return host;
  }

  async #connect(machine: number): Promise<void> {
    const link = ['link', 'add', 'uplink', 'type', 'veth', 'peer', 'name', 'cable', 'netns', String(this.#outside.pid)];
    await execute('nsenter', ['-t', String(machine), '-n', 'ip', ...link]);
    for (const [pid, name, ip] of [
      [machine, 'uplink', Host.MACHINE],
      [this.#outside.pid!, 'cable', '192.0.2.1'],
    ] as const) {
      await execute('nsenter', ['-t', String(pid), '-n', 'ip', 'addr', 'add', `${ip}/24`, 'dev', name]);
      await execute('nsenter', ['-t', String(pid), '-n', 'ip', 'link', 'set', name, 'up']);
    }
  }

  /** Runs a program of this machine in the network of the foreign host, and returns its output. */
  async outside(...command: string[]): Promise<string> {
    return await inside(this.#outside.pid!, ...command);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of [this.#pid, this.#outside.pid!]) process.kill(pid);
    await once(this.#outside, 'exit');
  }
}

/** Runs a program of this machine in the network of a process. */
export async function inside(pid: number, ...command: string[]): Promise<string> {
  const { stdout } = await execute('nsenter', ['-t', String(pid), '-n', ...command], { maxBuffer: 2 ** 24 });
  return stdout;
}

/** A program of this machine that serves in the network of a process, from its first line of output on. */
export async function serving(pid: number, ...command: string[]): Promise<AsyncDisposable> {
  const child = spawn('nsenter', ['-t', String(pid), '-n', ...command], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  child.stdout.resume();
  return {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
