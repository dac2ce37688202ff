import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

import { leastOf } from './bytes-in-use.ts';

const ATTEMPTS = 3;

/** The resident memory of a process in MB of 2^20 bytes: now (`VmRSS`), or its peak (`VmHWM`). */
export function residentMb(pid: number, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)![1]) / 1024;
}

/**
 * Runs `work`, and fails if the peak of a process rises by `maxMb` or more. Work that exceeds it is done anew: its
 * garbage and compiled functions are part of the first figures, what it needs is part of each.
 */
export async function assertSmallGrowth(pids: number | readonly number[], maxMb: number, work: () => unknown) {
  const grown = await leastOf(ATTEMPTS, maxMb, async () => {
    const before = [pids].flat().map((pid) => {
      writeFileSync(`/proc/${pid}/clear_refs`, '5'); // the peak begins anew
      return { pid, usedMb: residentMb(pid) };
    });
    await work();
    return Math.max(...before.map(({ pid, usedMb }) => residentMb(pid, 'VmHWM') - usedMb));
  });
  assert.ok(grown < maxMb, `grew by ${grown.toFixed(1)} MB; less than ${maxMb} MB are expected`);
}
