import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** How a process ended. `exitCode` is 128 + signal for a process that was ended by a signal. */
export type ExitStatus = Readonly<{
  exitCode: number;
  signal?: number;
  oomKilled: boolean;
  finishedAt: Temporal.Instant;
}>;

const EXITED = /^exited (\d+) (\d+) ([01]) (\d+)$/;

/** Reads `exited CODE SIGNAL OOM NANOSECONDS`, as the shim sends and stores it. */
export function parseExit(line: string): ExitStatus {
  const match = EXITED.exec(line);
  if (match === null) throw new Error(`not an exit status: ${line}`);
  const signal = Number(match[2]);
  return {
    exitCode: Number(match[1]),
    ...(signal > 0 && { signal }),
    oomKilled: match[3] === '1',
    finishedAt: new Temporal.Instant(BigInt(match[4]!)),
  };
}

/** The status file of an ended shim; undefined if missing or unreadable. */
export function readExit(directory: string): ExitStatus | undefined {
  const text = readStatus(directory);
  return text === undefined || !EXITED.test(text) ? undefined : parseExit(text);
}

function readStatus(directory: string): string | undefined {
  try {
    return readFileSync(join(directory, 'status'), 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return undefined;
    throw error;
  }
}
