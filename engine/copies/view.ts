import { closeSync, fstatSync } from 'node:fs';

import { holdAt } from '../host/files/held-files.ts';
import { chmodAt, createFileAt, holdInRoot, mkdirAt, type BytePath } from '../host/files/openat.ts';
import { linksBelow, resolveLinks } from '../host/files/resolve-links.ts';
import { attachMount, cloneMount, restrictMount, type ThreadMounts } from '../host/mounts/mount-tree.ts';
import type { IdMap } from '../host/users/id-map.ts';
import { ownIds } from '../host/users/own-ids.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import { MappedOwners } from './mapped-owners.ts';
import type { PathStat, ViewMount, ViewRequest } from './messages.ts';
import { innerPathOf, type InnerPath } from './paths.ts';

const TYPE = { mask: 0o170000, directory: 0o040000, symlink: 0o120000 } as const;

/**
 * A container's root and its mounts as this thread alone sees them: nothing that the processes of the container mount,
 * move or link meanwhile leads out of them. Everything is reached through the descriptor of the root.
 */
export class View implements Disposable {
  readonly #root: number;
  readonly #held: DisposableStack;
  /** Undefined where its owners are those of the container. */
  readonly owners: MappedOwners | undefined;
  /** Owners beyond them are refused; undefined where there are none. */
  readonly bounds: IdMap | undefined;

  /** To be called in the namespace of the thread. */
  constructor(mounts: ThreadMounts, { root, mounts: shown, readOnly, idMap, bounds }: ViewRequest) {
    this.bounds = bounds ?? idMap ?? ownIds;
    using held = new DisposableStack();
    using trees = new DisposableStack();
    const copies = mounts.inProcess(() => copiesOf(root, shown, held, trees));
    attachMount(copies.root, held.use(mounts.makePlace()).held);
    this.owners = idMap && new MappedOwners(idMap, copies.root);
    for (const { mount, tree } of copies.mounts) {
      const attach = (): void => attachInside(copies.root, mount, tree);
      if (this.owners === undefined) attach();
      else this.owners.write(attach);
    }
    if (readOnly !== 'nothing') restrictMount(copies.root, ['ro'], { recursive: readOnly === 'everything' });
    this.#root = copies.root;
    this.#held = held.move();
  }

  get root(): number {
    return this.#root;
  }

  [Symbol.dispose](): void {
    this.#held.dispose();
  }

  /** Holds the target of a path; a link at its end is held itself, unless the path is marked as a folder. */
  hold(path: InnerPath): number {
    const { parts, isFolder } = path;
    if (isFolder) return holdInRoot(this.#root, parts.join('/'));
    const parent = holdInRoot(this.#root, parts.slice(0, -1).join('/'));
    try {
      return holdAt(parent, parts.at(-1)!);
    } finally {
      closeSync(parent);
    }
  }

  /** Like `hold`, with the facts for `HEAD`. Throws `invalid` for a file whose path is marked as a folder. */
  look(path: string): { held: number; stat: PathStat } {
    const inner = innerPathOf(path);
    const held = this.hold(inner);
    try {
      const { mode, size, mtimeNs } = fstatSync(held, { bigint: true });
      const type = Number(mode) & TYPE.mask;
      if (inner.isFolder && type !== TYPE.directory) throw new EngineError('invalid', `${path} is not a directory`);
      const linkTarget = type === TYPE.symlink ? `/${readable(this.endOf(inner.parts))}` : '';
      const name = Buffer.from(inner.base, 'latin1').toString();
      return { held, stat: { name, sizeBytes: Number(size), mode: Number(mode), mtimeNs, linkTarget } };
    } catch (error) {
      closeSync(held);
      throw error;
    }
  }

  /** Resolves all links of a path; its end may be missing. */
  endOf(parts: readonly BytePath[]): BytePath[] {
    return resolveLinks(parts, linksBelow(this.#root));
  }
}

const HARMLESS = ['nosuid', 'nodev', 'noexec', 'noatime'] as const;

type Copies = { root: number; mounts: { mount: ViewMount; tree: number }[] };

/** Copies of the mounts, outer ones first. A source that is gone is left out. */
function copiesOf(root: string, shown: readonly ViewMount[], held: DisposableStack, trees: DisposableStack): Copies {
  const copies: Copies = { root: held.adopt(cloneMount(root), closeSync), mounts: [] };
  restrictMount(copies.root, HARMLESS);
  for (const mount of shown.toSorted((a, b) => depth(a) - depth(b))) {
    try {
      const tree = trees.adopt(cloneMount(mount.source, { recursive: mount.recursive }), closeSync);
      restrictMount(tree, mount.writable ? HARMLESS : [...HARMLESS, 'ro']);
      copies.mounts.push({ mount, tree });
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    }
  }
  return copies;
}

function depth({ destination }: ViewMount): number {
  return innerPathOf(destination).parts.length;
}

function attachInside(root: number, { destination }: ViewMount, tree: number): void {
  const isFolder = (fstatSync(tree).mode & TYPE.mask) === TYPE.directory;
  const parts = resolveLinks(innerPathOf(destination).parts, linksBelow(root));
  const place = holdOrMake(root, parts, isFolder);
  try {
    attachMount(tree, place);
  } finally {
    closeSync(place);
  }
}

/** The mount point; a missing one is created, as the runtime would at the start. */
function holdOrMake(root: number, parts: readonly BytePath[], isFolder: boolean): number {
  const path = parts.join('/');
  try {
    return holdInRoot(root, path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || parts.length === 0) throw error;
  }
  const parent = holdOrMake(root, parts.slice(0, -1), true);
  try {
    if (isFolder) mkdirAt(parent, parts.at(-1)!, 0o755);
    else closeSync(createFileAt(parent, parts.at(-1)!));
    chmodAt(parent, parts.at(-1)!, 0o755); // regardless of the daemon's umask
  } finally {
    closeSync(parent);
  }
  return holdInRoot(root, path);
}

function readable(parts: readonly BytePath[]): string {
  return Buffer.from(parts.join('/'), 'latin1').toString();
}
