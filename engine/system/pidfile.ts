import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { EngineError, hasCode } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { makeFolders } from '../lib/folders.ts';

const TICKS_PER_SECOND = 100; // USER_HZ, the same on every Linux
const CLOCK_SLACK_MS = 2000;

/**
 * Writes our process id; disposing removes the file. A dead daemon's file is overwritten. Throws when the daemon named
 * in the file is alive.
 */
export class Pidfile implements Disposable {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    try {
      this.#write();
    } catch (error) {
      throw error instanceof EngineError ? error : failedAt(path, error);
    }
  }

  #write(): void {
    const path = this.#path;
    makeFolders(dirname(path), 0o755);
    const owner = ownerOf(path);
    if (owner !== undefined) {
      throw new EngineError(
        'conflict',
        `the pid file ${path} names process ${owner}, which is running: another daemon uses it`,
      );
    }
    writeFileSync(path, `${process.pid}\n`);
    chmodSync(path, 0o644);
  }

  [Symbol.dispose](): void {
    if (readPid(this.#path) === process.pid) rmSync(this.#path, { force: true });
  }
}

function failedAt(path: string, cause: unknown): EngineError {
  return new EngineError('failed', `the pid file ${path} cannot be written: ${messageOf(cause)}`, { cause });
}

/** The living process that wrote the file. A process that is younger than the file has reused the pid. */
function ownerOf(path: string): number | undefined {
  const pid = readPid(path);
  if (pid === undefined || pid === process.pid) return undefined;
  const startedMs = startOf(pid);
  if (startedMs === undefined || startedMs > statSync(path).mtimeMs + CLOCK_SLACK_MS) return undefined;
  return pid;
}

function readPid(path: string): number | undefined {
  const text = readText(path)?.trim() ?? '';
  return /^[1-9]\d*$/.test(text) ? Number(text) : undefined;
}

/** When a process was started, in milliseconds since 1970. */
function startOf(pid: number): number | undefined {
  const status = readText(`/proc/${pid}/stat`);
  if (status === undefined) return undefined;
  // The name in parentheses may contain anything, so fields are counted from behind it; the start time is the 22nd.
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z') return undefined; // dead, but not reaped yet
  const bootSeconds = Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? 0);
  return (bootSeconds + Number(fields[19]) / TICKS_PER_SECOND) * 1000;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // ESRCH: the process ends in between.
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return undefined;
    throw error;
  }
}
