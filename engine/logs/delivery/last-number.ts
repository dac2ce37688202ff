import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';

/** Longer than any line of the buffer. */
const TAIL_BYTES = 256 * 1024;

/** The number of the last line in a buffer; 0 when there is none. */
export function lastNumber(path: string): number {
  for (const each of [path, `${path}.1`]) {
    const number = lastOf(each);
    if (number > 0) return number;
  }
  return 0;
}

function lastOf(path: string): number {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0;
    throw error;
  }
  try {
    const { size } = fstatSync(descriptor);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(descriptor, tail, 0, tail.length, size - tail.length);
    return Number(/.*,"seq":(\d+)\}\n/s.exec(tail.toString('latin1'))?.[1] ?? 0);
  } finally {
    closeSync(descriptor);
  }
}
