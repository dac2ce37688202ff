import { closeSync, statSync } from 'node:fs';

import { openRoot, type BytePath } from '../../host/files/openat.ts';
import { linksBelow, resolveLinks, type LinkReader } from '../../host/files/resolve-links.ts';
import type { OciMount } from './mounts.ts';

/** A file system, and the folder where it is mounted. */
type Tree = Readonly<{ parts: readonly BytePath[]; readLink: LinkReader }>;

/** A container's root with its mounts before they are made: links are looked up where the container will see them. */
export class MountedTree implements Disposable {
  readonly #folders = new DisposableStack();
  readonly #trees: Tree[];

  constructor(root: string) {
    this.#trees = [{ parts: [], readLink: this.#linksOf(root) }];
  }

  /** Resolves the mount's place with the mounts added before it, and adds it. */
  add({ mount, parts }: Readonly<{ mount: OciMount; parts: readonly BytePath[] }>): BytePath[] {
    const place = this.resolve(parts);
    this.#trees.push({
      parts: place,
      readLink: mount.type === 'bind' ? this.#linksOf(mount.visibleAt ?? mount.source) : noLinks,
    });
    return place;
  }

  /** Resolves all links of a path; its end may be missing. */
  resolve(parts: readonly BytePath[]): BytePath[] {
    return resolveLinks(parts, (folder, name) => this.#readLink(folder, name));
  }

  [Symbol.dispose](): void {
    this.#folders.dispose();
  }

  #readLink(folder: readonly BytePath[], name: BytePath): BytePath | undefined {
    const path = [...folder, name];
    const { parts, readLink } = this.#trees.findLast((tree) => tree.parts.every((part, at) => path[at] === part))!;
    return parts.length === path.length ? undefined : readLink(folder.slice(parts.length), name); // a mount is no link
  }

  /** Opens the folder when the first path leads there, because a server may not answer. */
  #linksOf(path: string): LinkReader {
    let readLink: LinkReader | undefined;
    return (folder, name) => {
      readLink ??= isFolder(path) ? linksBelow(this.#folders.adopt(openRoot(path), closeSync)) : noLinks;
      return readLink(folder, name);
    };
  }
}

function noLinks(): undefined {
  return undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
