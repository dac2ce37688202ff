import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';
import { START, type Position } from './line.ts';

/** The position of the delivery, and the number of lost lines. */
type Checkpoint = Readonly<{ position: Position; lost: number }>;

const RECORD_BYTES = 512;

/** The checkpoint in this file; the beginning when there is none. */
export function readCheckpoint(path: string): Checkpoint {
  try {
    const { position, lost } = JSON.parse(readFileSync(path, 'utf8')) as Checkpoint;
    return { position, lost };
  } catch (error) {
    // A crash of the machine may leave half of it: duplicates are better than losses.
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError) return { position: START, lost: 0 };
    throw error;
  }
}

/**
 * Overwrites the last one in one call of the same length, so that it is never half written, and fits on a full disk.
 */
export function writeCheckpoint(path: string, checkpoint: Checkpoint): void {
  const record = Buffer.alloc(RECORD_BYTES, ' ');
  record.write(JSON.stringify(checkpoint));
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    writeSync(descriptor, record, 0, RECORD_BYTES, 0);
  } finally {
    closeSync(descriptor);
  }
}
