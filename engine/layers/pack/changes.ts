import { closeSync, fstatSync, readdirSync, type Dirent, type Stats } from 'node:fs';

import { holdAt, xattrOf } from '../../host/files/held-files.ts';
import { readable, type BytePath } from '../../host/files/openat.ts';
import { overlayAttribute } from '../../host/rootless.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { isMountPoint } from './mount-points.ts';

/** As the API counts them. */
export const KIND = { modified: 0, added: 1, deleted: 2 } as const;
export type Change = { Path: string; Kind: (typeof KIND)[keyof typeof KIND] };

/** The entry of the layers below under a name; for a folder, the held folders that it merges, topmost first. */
type Below =
  | { kind: 'folder'; within: number[]; isClosed: boolean }
  | { kind: 'other'; within: number[] }
  | { kind: 'none' };
type BelowEntry = Exclude<Below, { kind: 'none' }>;

const OPAQUE = overlayAttribute('opaque');
const DEEPEST = 2000;
const CAPABILITY = 'security.capability';

/**
 * The changes of a writable layer against the layers below, sorted by path. A folder is compared by mode and owner,
 * anything else also by size and time. All folders above a change have changed. A folder that hides the one below is
 * reported by the hidden entries.
 *
 * Mount points of the engine are left out.
 */
export function changesOf(upper: string, lower: readonly string[]): Change[] {
  using held = new DisposableStack();
  const hold = (path: string): number => held.adopt(holdAt(-1, Buffer.from(path).toString('latin1')), closeSync);
  const comparison = new Comparison();
  comparison.folder(hold(upper), lower.map(hold), '', { isOpaque: false, depth: 0 });
  return comparison.sorted();
}

type Where = Readonly<{ isOpaque: boolean; depth: number }>;

class Comparison {
  readonly #changes = new Map<BytePath, Change['Kind']>();

  sorted(): Change[] {
    const paths = [...this.#changes.keys()].toSorted((a, b) => (a < b ? -1 : 1));
    return paths.map((path) => ({ Path: readable(path), Kind: this.#changes.get(path)! }));
  }

  /** `path` is empty for the root, which is never reported. */
  folder(upper: number, lower: readonly number[], path: BytePath, { isOpaque, depth }: Where): void {
    if (depth > DEEPEST) throw new EngineError('failed', `there are more than ${DEEPEST} folders in each other`);
    const below = listBelow(lower);
    const seen = new Set<BytePath>();
    for (const entry of entriesOf(upper)) {
      seen.add(entry.name);
      this.#entry(upper, entry, below.get(entry.name), path, { isOpaque, depth });
    }
    if (!isOpaque) return;
    for (const name of below.keys()) if (!seen.has(name)) this.#tell(`${path}/${name}`, KIND.deleted);
  }

  #entry(upper: number, entry: Dirent, below: BelowEntry | undefined, folder: BytePath, where: Where): void {
    const { name } = entry;
    const path = `${folder}/${name}`;
    if (entry.isCharacterDevice() && isWhiteout(upper, name)) {
      if (below !== undefined) this.#tell(path, KIND.deleted);
    } else if (entry.isDirectory()) {
      this.#subfolder(upper, name, below, folder, where);
    } else if (below !== undefined) {
      if (isOtherFile(upper, below, name) && !(isMountPoint(path) && isEmpty(upper, name)))
        this.#tell(path, KIND.modified);
    } else if (!(entry.isFile() && isMountPoint(path))) {
      this.#tell(path, KIND.added);
    }
  }

  #subfolder(upper: number, name: BytePath, below: BelowEntry | undefined, folder: BytePath, where: Where): void {
    using held = new DisposableStack();
    const inner = holdIfThere(upper, name);
    if (inner === undefined) return;
    held.adopt(inner, closeSync);
    const lower = below?.kind === 'folder' ? foldersBelow(below, name, held) : [];
    const path = `${folder}/${name}`;
    if (lower.length > 0) {
      if (differs(fstatSync(inner), fstatSync(lower[0]!))) this.#tell(path, KIND.modified);
    } else if (below !== undefined) {
      this.#tell(path, KIND.modified);
    } else if (!isMountPoint(path)) {
      this.#tell(path, KIND.added);
    }
    const isOpaque = where.isOpaque || isMarkedOpaque(inner);
    this.folder(inner, lower, path, { isOpaque, depth: where.depth + 1 });
  }

  /** The folders above have changed as well. */
  #tell(path: BytePath, kind: Change['Kind']): void {
    this.#changes.set(path, kind);
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end);
      if (this.#changes.has(folder)) return;
      this.#changes.set(folder, KIND.modified);
    }
  }
}

function entriesOf(held: number): Dirent[] {
  return readdirSync(`/proc/self/fd/${held}`, { withFileTypes: true, encoding: 'latin1' });
}

/** The entries of folders that lie on each other, topmost first, as overlayfs merges them. */
function listBelow(lower: readonly number[]): Map<BytePath, BelowEntry> {
  const found = new Map<BytePath, Below>();
  for (const folder of lower) {
    for (const entry of entriesOf(folder)) {
      const known = found.get(entry.name);
      if (known === undefined) found.set(entry.name, belowOf(folder, entry));
      else if (known.kind === 'folder' && !known.isClosed) addBelow(known, folder, entry);
    }
  }
  for (const [name, { kind }] of found) if (kind === 'none') found.delete(name);
  return found as Map<BytePath, BelowEntry>;
}

function belowOf(folder: number, entry: Dirent): Below {
  if (entry.isDirectory()) return { kind: 'folder', within: [folder], isClosed: false };
  if (entry.isCharacterDevice() && isWhiteout(folder, entry.name)) return { kind: 'none' };
  return { kind: 'other', within: [folder] };
}

function addBelow(known: Extract<Below, { kind: 'folder' }>, folder: number, entry: Dirent): void {
  if (entry.isDirectory()) known.within.push(folder);
  else known.isClosed = true; // hidden by the folder above, and hides the one below
}

/** Held, down to one that hides those below it. */
function foldersBelow({ within }: { within: readonly number[] }, name: BytePath, held: DisposableStack): number[] {
  const folders: number[] = [];
  for (const folder of within) {
    const inner = held.adopt(holdAt(folder, name), closeSync);
    folders.push(inner);
    if (isMarkedOpaque(inner)) break;
  }
  return folders;
}

function isMarkedOpaque(held: number): boolean {
  return xattrOf(held, OPAQUE)?.toString() === 'y';
}

function isWhiteout(folder: number, name: BytePath): boolean {
  const held = holdIfThere(folder, name);
  if (held === undefined) return false;
  try {
    return fstatSync(held).rdev === 0;
  } finally {
    closeSync(held);
  }
}

/** A mount point that the runtime of an earlier version has created in the writable layer. */
function isEmpty(folder: number, name: BytePath): boolean {
  const held = holdIfThere(folder, name);
  if (held === undefined) return false;
  try {
    const stat = fstatSync(held);
    return stat.isFile() && stat.size === 0;
  } finally {
    closeSync(held);
  }
}

function holdIfThere(folder: number, name: BytePath): number | undefined {
  try {
    return holdAt(folder, name);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined; // the container has removed it meanwhile
    throw error;
  }
}

/** Whether an entry other than a folder differs from the one below. */
function isOtherFile(upper: number, below: BelowEntry, name: BytePath): boolean {
  using held = new DisposableStack();
  const now = holdIfThere(upper, name);
  if (now === undefined) return false;
  held.adopt(now, closeSync);
  const before = held.adopt(holdAt(below.within[0]!, name), closeSync);
  if (differs(fstatSync(now), fstatSync(before))) return true;
  const [capability, old] = [xattrOf(now, CAPABILITY), xattrOf(before, CAPABILITY)];
  return !(capability ?? NOTHING).equals(old ?? NOTHING);
}

const NOTHING = Buffer.alloc(0);

function differs(now: Stats, before: Stats): boolean {
  if (now.mode !== before.mode || now.uid !== before.uid || now.gid !== before.gid || now.rdev !== before.rdev)
    return true;
  return !now.isDirectory() && (now.size !== before.size || !isSameTime(now.mtimeMs, before.mtimeMs));
}

/** Archives have whole seconds: a missing fraction on either side matches any. */
function isSameTime(one: number, other: number): boolean {
  if (one === other) return true;
  const isWhole = one % 1000 === 0 || other % 1000 === 0;
  return isWhole && Math.floor(one / 1000) === Math.floor(other / 1000);
}
