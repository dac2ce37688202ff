import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';

/** How a process ended. `exitCode` is 128 + signal for one that a signal ended. */
export type ExitStatus = Readonly<{
  exitCode: number;
  signal?: number;
  oomKilled: boolean;
  finishedAt: Temporal.Instant;
}>;

/** Reads `exited CODE SIGNAL OOM NANOSECONDS`, as the shim sends and stores it. */
export function parseExit(line: string): ExitStatus {
  const match = /^exited (\d+) (\d+) ([01]) (\d+)$/.exec(line.trim());
  if (match === null) throw new Error(`no exit status: ${line}`);
  const signal = Number(match[2]);
  return {
    exitCode: Number(match[1]),
    ...(signal > 0 && { signal }),
    oomKilled: match[3] === '1',
    finishedAt: new Temporal.Instant(BigInt(match[4]!)),
  };
}

/** What a shim that has left wrote down; undefined when it wrote nothing. */
export function readExit(directory: string): ExitStatus | undefined {
  try {
    return parseExit(readFileSync(join(directory, 'status'), 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
