import { refuseAbove } from '../../buildfile/limits.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import { append } from '../../lib/append.ts';
import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';

/**
 * An entry with the names below it, if it is a folder that has some; `sorted` once they were asked for. Every byte of a
 * file's node counts: `sum` is binary, and the place of the content has no object of its own.
 */
export type ContextNode = Pick<ContextEntry, 'type' | 'target'> & {
  readonly sum: string;
  readonly offset: number;
  /** Length of the content at `offset`; undefined if it is not there in one piece. */
  readonly bytes: number | undefined;
  children?: Map<string, ContextNode>;
  sorted?: readonly string[] | undefined;
};

const MAX_LINKS = 255;
/** Walks take a part of the stack for each. */
const MAX_DEPTH = 1000;
/** Memory of all entries, by the figures below: those of 240,000 files with short names. */
const MAX_BYTES = 48 * 1024 * 1024;
/** Memory of an entry besides its name and target, and of the table of a folder that is not empty. */
const [ENTRY_BYTES, TABLE_BYTES] = [200, 300];

/** The entries of a context: names in folders. */
export class ContextTree {
  readonly root = emptyFolder();
  /** The paths of hard links, also of some that were replaced since. */
  readonly hardLinks = new Set<string>();
  #bytes = 0;

  /** A later entry replaces an earlier one. Throws `invalid` for another name of a missing file, and for too many entries. */
  add({ path, type, sum, target, content }: ContextEntry): void {
    const names = path.split('/').map(withoutParent);
    const { offset = 0, bytes } = content ?? {};
    const entry: ContextNode = { type, sum: Buffer.from(sum, 'hex').toString('latin1'), target, offset, bytes };
    const name = names.pop()!;
    refuseAbove(MAX_DEPTH, names.length, 'the path of a file in the context', 'folders');
    let folder = this.root;
    for (const each of names) folder = this.#folderIn(folder, each);
    const before = folder.children?.get(name);
    if (entry.type === 'folder') {
      this.#put(folder, name, before?.children ? { ...entry, children: before.children } : entry);
    } else if (entry.type === 'file' && entry.target !== '') {
      this.hardLinks.add(path);
      this.#put(folder, name, this.#linkTo(path, entry));
    } else this.#put(folder, name, entry);
  }

  get(path: string): ContextNode | undefined {
    let node: ContextNode | undefined = this.root;
    for (const name of path.split('/')) node = node?.children?.get(name);
    return node;
  }

  /** By the links of the archive alone, as if the context were the root of a file system. */
  resolve(path: string): { path: string; node: ContextNode } | undefined {
    const done: { name: string; node: ContextNode }[] = [];
    const left = path.split('/').toReversed();
    for (let links = 0; left.length > 0;) {
      const name = left.pop()!;
      if (name === '..') done.pop();
      if (name === '' || name === '.' || name === '..') continue;
      const node = (done.at(-1)?.node ?? this.root).children?.get(name);
      if (node === undefined) return undefined;
      if (node.type !== 'link') {
        done.push({ name, node });
        continue;
      }
      links += 1;
      if (links > MAX_LINKS) return undefined;
      if (node.target.startsWith('/')) done.length = 0;
      append(left, node.target.split('/').toReversed());
    }
    return { path: done.map(({ name }) => name).join('/'), node: done.at(-1)?.node ?? this.root };
  }

  /** The names in a folder in the order of their bytes, in steps. */
  *namesIn(folder: ContextNode): Generator<void, readonly string[]> {
    folder.sorted ??= yield* sortInSteps([...(folder.children?.keys() ?? [])]);
    return folder.sorted;
  }

  #folderIn(folder: ContextNode, name: string): ContextNode {
    const known = folder.children?.get(name);
    if (known?.type === 'folder') return known;
    const made = emptyFolder();
    this.#put(folder, name, made);
    return made;
  }

  #put(folder: ContextNode, name: string, node: ContextNode): void {
    this.#bytes += ENTRY_BYTES + name.length + node.target.length + (folder.children === undefined ? TABLE_BYTES : 0);
    if (this.#bytes > MAX_BYTES)
      throw new EngineError('invalid', 'the context has too many entries: ignore files, or send fewer');
    (folder.children ??= new Map()).set(name, node);
  }

  #linkTo(path: string, entry: ContextNode): ContextNode {
    const first = this.get(entry.target);
    if (first === undefined || first.type === 'folder') {
      const [name, target] = [path, entry.target].map((each) => JSON.stringify(each));
      throw new EngineError('invalid', `invalid archive: ${name} is another name of ${target}, which is not a file`);
    }
    return { ...first, sum: entry.sum, target: first.type === 'link' ? first.target : entry.target };
  }
}

function emptyFolder(): ContextNode {
  return { type: 'folder', sum: '', target: '', offset: 0, bytes: undefined };
}

/** A part of a text keeps the whole of it in memory, unless it is made anew. */
function withoutParent(part: string): string {
  return Buffer.from(part).toString();
}
