import { execFile } from 'node:child_process';
import { rmdir, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';

import { hasCode } from '../lib/errors.ts';
import { OpenFolder } from './open-folder.ts';

const execute = promisify(execFile);

/** So many entries are removed in the process; the rest of a larger tree by a child, which leaves the event loop free. */
const SMALL_TREE_ENTRIES = 64;

/** Removes a file or a folder with all that is in it, however deep. One that is not there is fine. */
export async function removeTree(path: string, signal: AbortSignal): Promise<void> {
  if (await succeeds(removeSmall(path))) return;
  signal.throwIfAborted();
  // It goes from folder to folder by descriptors, too.
  if (await succeeds(execute('rm', ['-rf', '--', path], { signal }))) return;
  signal.throwIfAborted();
  // A privileged container can make files immutable or append-only: even root removes them only without that mark. In
  // each folder with names alone, as a path would become too long.
  const unmark = ['-execdir', 'chattr', '-f', '-i', '-a', '--', '{}', '+'];
  await succeeds(execute('find', [path, '(', '-type', 'f', '-o', '-type', 'd', ')', ...unmark], { signal }));
  await execute('rm', ['-rf', '--', path], { signal });
}

/** For the gentler of several ways: why it failed does not matter, the last one will tell. */
async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch {
    return false;
  }
}

async function removeSmall(path: string): Promise<void> {
  try {
    const left = { entries: SMALL_TREE_ENTRIES };
    await using folder = await OpenFolder.open(path);
    await removeEntries(folder, left);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    // A link here is `ELOOP`.
    if (!hasCode(error, 'ENOTDIR') && !hasCode(error, 'ELOOP')) throw error;
    await unlink(path);
    return;
  }
  await rmdir(path);
}

async function removeEntries(folder: OpenFolder, left: { entries: number }): Promise<void> {
  for await (const entry of folder.entries()) {
    if (left.entries === 0) throw new Error('this tree is not small');
    left.entries -= 1;
    const path = folder.pathOf(entry.name);
    if (!entry.isDirectory()) {
      await unlink(path);
      continue;
    }
    {
      await using inner = await folder.inner(entry.name);
      await removeEntries(inner, left);
    }
    await rmdir(path);
  }
}
