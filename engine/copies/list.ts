import { closeSync, fstatSync, opendirSync } from 'node:fs';

import { holdAt, targetOf } from '../host/files/held-files.ts';
import { readable, type BytePath } from '../host/files/openat.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import type { Folder, FolderEntry } from './messages.ts';
import { innerPathOf } from './paths.ts';
import type { View } from './view.ts';

/** A page shows no more; a folder of millions would fill the memory. */
const MAX_ENTRIES = 10_000;

/** Lists a folder in the order of the disk, with pauses. Links on the way are followed, those in it are not. */
export function* listInSteps(view: View, path: string): Generator<void, Folder> {
  using held = new DisposableStack();
  const { parts } = innerPathOf(path);
  const folder = held.adopt(view.hold(innerPathOf(`${path}/`)), closeSync);
  if (!fstatSync(folder).isDirectory()) throw new EngineError('invalid', `${path} is not a directory`);
  const found = held.adopt(opendirSync(`/proc/self/fd/${folder}`, { encoding: 'latin1' }), (open) => open.closeSync());
  const entries: FolderEntry[] = [];
  let isComplete = true;
  for (let next = found.readSync(); next !== null; next = found.readSync()) {
    isComplete = entries.length < MAX_ENTRIES;
    if (!isComplete) break;
    const entry = entryAt(view, folder, next.name);
    if (entry !== undefined) entries.push(entry);
    yield;
  }
  return { path: `/${parts.map(readable).join('/')}`, entries, isComplete };
}

/** Undefined for an entry that was removed meanwhile. */
function entryAt({ owners }: View, folder: number, name: BytePath): FolderEntry | undefined {
  try {
    const held = holdAt(folder, name);
    try {
      const stat = fstatSync(held, { bigint: true });
      return {
        name: readable(name),
        mode: Number(stat.mode),
        sizeBytes: Number(stat.size),
        mtimeNs: stat.mtimeNs,
        ...(owners?.ownerInside(stat) ?? { uid: Number(stat.uid), gid: Number(stat.gid) }),
        target: stat.isSymbolicLink() ? readable(targetOf(held)) : '',
      };
    } finally {
      closeSync(held);
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
