/** Starts and ends the processes of the gateway's benches. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { endingWithUs } from '@gantry/testing/redis/test-process.ts';

const interruption = new AbortController();

/** Aborted by the first signal: what is awaited with it rejects, and all that was started is ended on the way out. */
export const interrupted = interruption.signal;

/** Runs a bench. SIGINT, SIGTERM and SIGHUP end it with 130 and nothing left behind. */
export async function endingOnSignals(bench: () => Promise<void>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort());
  try {
    await bench();
  } catch (error) {
    if (!interrupted.aborted) throw error;
    process.exitCode = 130; // the error is what became of what was under way
  }
}

/** Returns the output of a program. */
export async function outputOf(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(...endingWithUs(command, args), { signal: interrupted });
  return stdout;
}

/** Starts a server. It is ended with the stack, and by the kernel when this process is killed. */
export function startServer(undo: AsyncDisposableStack, command: string, args: readonly string[]): ChildProcess {
  interrupted.throwIfAborted();
  const child = spawn(...endingWithUs(command, args), { stdio: ['ignore', 'ignore', 'inherit'] });
  undo.defer(async () => await end(child));
  return child;
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) server.close();
  return ports;
}

/** Resolves when it accepts connections. */
export async function startNode(undo: AsyncDisposableStack, args: readonly string[], port: number): Promise<number> {
  const child = startServer(undo, process.execPath, args);
  for (let tries = 0; !(await takesConnections(port)); tries += 1) {
    if (child.exitCode !== null || tries > 1200) throw new Error(`${args.join(' ')} does not listen on ${port}`);
    await sleep(50, undefined, { signal: interrupted });
  }
  return child.pid!;
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  const taken = await promise;
  socket.destroy();
  return taken;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
  await exited;
  clearTimeout(timer);
}

/** Lets all threads of a process run on this core only. */
export async function pin(pid: number, core: number): Promise<void> {
  await outputOf('taskset', ['-acp', String(core), String(pid)]);
}

/** Gives a process a part of one core, whatever else is idle. Cgroup v1 or v2. */
export async function shareOfCore(pid: string, share: number): Promise<AsyncDisposable> {
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const parent = unified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu';
  const group = join(parent, `gantry-bench-${pid}`);
  await mkdir(group);
  const [period, quota] = [20_000, Math.round(20_000 * share)];
  if (unified) await writeFile(join(group, 'cpu.max'), `${quota} ${period}`);
  else {
    await writeFile(join(group, 'cpu.cfs_period_us'), String(period));
    await writeFile(join(group, 'cpu.cfs_quota_us'), String(quota));
  }
  await writeFile(join(group, 'cgroup.procs'), pid);
  return {
    [Symbol.asyncDispose]: async () => {
      // The process may have ended already.
      if (existsSync(`/proc/${pid}`)) await writeFile(join(parent, 'cgroup.procs'), pid);
      await rmdir(group);
    },
  };
}
