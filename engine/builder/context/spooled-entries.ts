import { closeSync, openSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import type { ContextTree } from './context-tree.ts';

export function entriesIn(folder: string): string {
  return join(folder, 'context.entries');
}

export function spoolIn(folder: string): string {
  return join(folder, 'context.tar');
}

type Spooling = Readonly<{ tree: ContextTree; folder: string; behind: number; signal: AbortSignal }>;

/** Writes an archive and its entries into the files of a context, and adds them to the tree. */
export async function spool(
  archives: Archives,
  archive: AsyncIterable<Uint8Array>,
  { tree, folder, behind, signal }: Spooling,
): Promise<void> {
  using written = new DisposableStack();
  const entries = written.adopt(openSync(entriesIn(folder), behind === 0 ? 'wx' : 'a', 0o600), closeSync);
  const refused = new AbortController();
  let failure: EngineError | undefined;
  const add = (group: readonly ContextEntry[]): void => {
    failure ??= addAll(tree, group);
    writeSync(entries, `${JSON.stringify(group)}\n`);
    if (failure !== undefined) refused.abort(failure);
  };
  const file = spoolIn(folder);
  try {
    await archives.spoolContext(archive, { file, behind }, add, AbortSignal.any([signal, refused.signal]));
  } catch (error) {
    throw failure ?? error;
  }
  if (failure !== undefined) throw failure;
}

/** Adds the entries of an earlier context to the tree; returns whether some were removed since. */
export async function readEntries(tree: ContextTree, folder: string, signal: AbortSignal): Promise<boolean> {
  const slices = new Slices(signal);
  let hasRemoved = false;
  await using file = await open(entriesIn(folder), 'r');
  for await (const line of file.readLines()) {
    const group = JSON.parse(line) as ContextEntry[] | { removed: string[] };
    if ('removed' in group) {
      hasRemoved = true;
      remove(tree, group.removed);
    } else {
      const failure = addAll(tree, group);
      if (failure !== undefined) throw failure;
    }
    if (slices.isOver) await slices.pause();
  }
  return hasRemoved;
}

/** Excludes the entries at these paths. */
export function remove(tree: ContextTree, paths: readonly string[]): void {
  for (const path of paths) {
    const node = tree.find(path);
    if (node !== undefined) tree.remove(node);
  }
}

/** Returns why one of them is refused. */
function addAll(tree: ContextTree, group: readonly ContextEntry[]): EngineError | undefined {
  try {
    for (const entry of group) tree.add(entry);
    return undefined;
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
}
