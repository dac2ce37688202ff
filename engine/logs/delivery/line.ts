import { createHash } from 'node:crypto';

import type { Entry } from '../log-entry.ts';

/** A place in the buffer: behind the line `seq`, in a file that is known by its inode. */
export type Position = Readonly<{
  seq: number;
  inode: number;
  offset: number;
  /** Long lines that are not complete yet, by stream: the pieces so far. */
  open: Readonly<{ stdout?: OpenLine; stderr?: OpenLine }>;
}>;

type OpenLine = Readonly<{ time: string; pieces: number }>;

/** A line of a container's output, or a piece of a long one, on its way to a receiver. */
export type Line = Readonly<{
  /** Every line has the number after that of the line before. */
  seq: number;
  /** How many lines before it are not in the buffer any more. */
  missing: number;
  /** The time of the line; for a piece, of its beginning. */
  time: Temporal.Instant;
  source: 'stdout' | 'stderr';
  /** Without its newline, byte for byte. */
  text: Buffer;
  /** The line as text, with replacement characters for invalid bytes. */
  string: string;
  /** Place of a piece in its line. */
  partial: Partial | undefined;
  /** The position behind the line. */
  after: Position;
}>;

export type Partial = Readonly<{ id: string; ordinal: number; isLast: boolean }>;

export const START: Position = { seq: 0, inode: 0, offset: 0, open: {} };

/** `containerId` makes the ids of long lines differ between containers; they are the same in each reading. */
export function lineOf(
  entry: Entry,
  before: Position,
  place: { inode: number; offset: number },
  containerId: string,
): Line {
  const source = entry.isStdout ? 'stdout' : 'stderr';
  const whole = entry.text;
  const isEnd = whole.at(-1) === 0x0a;
  const known = before.open[source];
  const begun = known?.time === entry.time ? known.pieces : 0;
  const open = { ...before.open };
  if (isEnd) delete open[source];
  else open[source] = { time: entry.time, pieces: begun + 1 };
  const partial =
    isEnd && begun === 0
      ? undefined
      : { id: partialId(containerId, source, entry.time), ordinal: begun + 1, isLast: isEnd };
  return {
    seq: entry.seq,
    missing: entry.seq - before.seq - 1,
    time: Temporal.Instant.from(entry.time),
    source,
    text: isEnd ? whole.subarray(0, -1) : whole,
    string: isEnd ? entry.string.slice(0, -1) : entry.string,
    partial,
    after: { seq: entry.seq, ...place, open },
  };
}

/** All pieces of a line have the time of the first. */
function partialId(containerId: string, source: string, time: string): string {
  return createHash('sha256').update(`${containerId} ${source} ${time}`).digest('hex');
}
