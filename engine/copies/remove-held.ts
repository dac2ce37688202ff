import { closeSync, fstatSync } from 'node:fs';

import { holdOnSameMount, namesIn } from '../host/files/held-files.ts';
import { rmdirAt, unlinkIfThere, type BytePath } from '../host/files/openat.ts';
import { EngineError, hasCode } from '../lib/errors.ts';

const DEEPEST = 2000;

/** Removes anything but a folder, by one call of the kernel; a folder and a mount stay, as `other`. */
export function removeFileAt(directory: number, name: BytePath): 'nothing' | 'removed' | 'other' {
  try {
    return unlinkIfThere(directory, name) ? 'removed' : 'nothing';
  } catch (error) {
    if (hasCode(error, 'EISDIR') || hasCode(error, 'EBUSY')) return 'other';
    throw error;
  }
}

/**
 * Removes an entry with all below it, by descriptors. Throws `invalid` for a mount below it, which stays: it is not
 * part of the folder.
 */
export function removeAt(directory: number, name: BytePath, depth = 0): void {
  if (depth > DEEPEST) throw new EngineError('failed', `there are more than ${DEEPEST} folders in each other`);
  const held = holdForRemoval(directory, name);
  if (held === undefined) return;
  try {
    if (!fstatSync(held).isDirectory()) {
      unlinkIfThere(directory, name);
      return;
    }
    for (const inner of namesIn(held)) removeAt(held, inner, depth + 1);
  } finally {
    closeSync(held);
  }
  removeFolder(directory, name);
}

function holdForRemoval(directory: number, name: BytePath): number | undefined {
  try {
    return holdOnSameMount(directory, name);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    if (!hasCode(error, 'EXDEV')) throw error;
    const shown = Buffer.from(name, 'latin1').toString();
    throw new EngineError('invalid', `cannot overwrite ${shown}: it is a mount, or has one below it`);
  }
}

function removeFolder(directory: number, name: BytePath): void {
  try {
    rmdirAt(directory, name);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
