import { execFile } from 'node:child_process';
import { rmdir, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';

import { hasCode } from '../lib/errors.ts';
import { OpenFolder } from './open-folder.ts';

const execute = promisify(execFile);

/**
 * This many entries are removed in the process; a child removes the rest of a larger tree and leaves the event loop
 * free.
 */
const SMALL_TREE_ENTRIES = 64;

/** Removes a file or a folder with its content, however deep. A missing one is not an error. */
export async function removeTree(path: string, signal: AbortSignal): Promise<void> {
  if (await succeeds(removeSmall(path))) return;
  signal.throwIfAborted();
  // `rm` also walks by descriptors.
  if (await succeeds(execute('rm', ['-rf', '--', path], { signal }))) return;
  signal.throwIfAborted();
  // A privileged container can mark files immutable or append-only, and even root has to clear that first. `chattr`
  // runs in each folder with bare names, because whole paths could be too long.
  const unmark = ['-execdir', 'chattr', '-f', '-i', '-a', '--', '{}', '+'];
  await succeeds(execute('find', [path, '(', '-type', 'f', '-o', '-type', 'd', ')', ...unmark], { signal }));
  await execute('rm', ['-rf', '--', path], { signal });
}

/** A failure here is not reported: the last of several ways reports its reason. */
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
    // A link gives `ELOOP`.
    if (!hasCode(error, 'ENOTDIR') && !hasCode(error, 'ELOOP')) throw error;
    await unlink(path);
    return;
  }
  await rmdir(path);
}

async function removeEntries(folder: OpenFolder, left: { entries: number }): Promise<void> {
  for await (const entry of folder.entries()) {
    if (left.entries === 0) throw new Error('the tree is too large');
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
