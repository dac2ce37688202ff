import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readFileSync, watch } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';

/**
 * Starts `command` in a network namespace of its own (loopback up, nothing else), so that no link or rule of a daemon
 * under test touches the machine's, and waits until `socketPath` exists. Output goes to `logPath`.
 */
export async function startDaemonProcess(
  command: readonly string[],
  socketPath: string,
  logPath: string,
  netns?: string,
): Promise<ChildProcess> {
  const enter = netns === undefined ? ['unshare', '--net'] : ['nsenter', `--net=${netns}`];
  const script = 'ip link set lo up; exec "$@"';
  const log = createWriteStream(logPath, { flags: 'a' });
  await once(log, 'open');
  const child = spawn(enter[0]!, [...enter.slice(1), 'sh', '-c', script, 'sh', ...command], {
    stdio: ['ignore', log, log],
  });
  log.close();
  const dead = once(child, 'exit').then(() => {
    throw new Error(`${command[0]} ended before it listened:\n${readFileSync(logPath, 'utf8').slice(-4000)}`);
  });
  const over = new AbortController();
  try {
    await Promise.race([
      appears(socketPath, over.signal).then(async () => await accepts(socketPath, over.signal)),
      dead,
    ]);
  } finally {
    over.abort(); // of the wait for a daemon that has ended, which would keep this process from its own end
    dead.catch(() => undefined);
  }
  return child;
}

/** Sends a process a signal, SIGTERM by default, and waits for its end. */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** A socket's file exists a moment before it accepts connections. */
async function accepts(path: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED')) throw error;
    } finally {
      socket.destroy();
    }
  }
}

/** Resolves when there is such a file, or at the abort. */
async function appears(path: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (existsSync(path)) resolve();
  };
  using watcher = Object.assign(watch(dirname(path), look), {
    [Symbol.dispose](this: { close(): void }) {
      this.close();
    },
  });
  void watcher;
  signal.addEventListener('abort', () => resolve());
  look();
  await promise;
}
