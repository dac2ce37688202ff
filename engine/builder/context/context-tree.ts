import { refuseAbove } from '../../buildfile/limits.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import { append } from '../../lib/append.ts';
import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';

type Entry = Omit<ContextEntry, 'path'>;
/** An entry with the names below it, if it is a folder; `sorted` once they were asked for. */
export type ContextNode = Entry & { children?: Map<string, ContextNode>; sorted?: readonly string[] | undefined };

const MAX_LINKS = 255;
/** Walks take a part of the stack for each. */
const MAX_DEPTH = 1000;
/** Entries of a context, each of which takes some 400 bytes of memory. */
const MAX_ENTRIES = 500_000;

/** The entries of a context: names in folders. */
export class ContextTree {
  readonly root: ContextNode = { type: 'folder', sum: '', target: '', children: new Map() };
  /** The paths of hard links, also of some that were replaced since. */
  readonly hardLinks = new Set<string>();
  #count = 0;

  /** A later entry replaces an earlier one. Throws `invalid` for another name of a missing file, and for too many entries. */
  add({ path, ...entry }: ContextEntry): void {
    const names = path.split('/');
    const name = names.pop()!;
    refuseAbove(MAX_DEPTH, names.length, 'the path of a file in the context', 'folders');
    let folder = this.root;
    for (const each of names) folder = this.#folderIn(folder, each);
    const before = folder.children!.get(name);
    if (entry.type === 'folder') {
      const children = before?.children ?? new Map<string, ContextNode>();
      this.#put(folder, name, { ...entry, children });
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
    const known = folder.children!.get(name);
    if (known?.type === 'folder') return known;
    const made: ContextNode = { type: 'folder', sum: '', target: '', children: new Map() };
    this.#put(folder, name, made);
    return made;
  }

  #put(folder: ContextNode, name: string, node: ContextNode): void {
    const { children } = folder;
    this.#count += 1;
    refuseAbove(MAX_ENTRIES, this.#count, 'the context', 'entries');
    children!.set(name, node);
  }

  #linkTo(path: string, entry: Entry): ContextNode {
    const first = this.get(entry.target);
    if (first === undefined || first.type === 'folder') {
      const [name, target] = [path, entry.target].map((each) => JSON.stringify(each));
      throw new EngineError('invalid', `invalid archive: ${name} is another name of ${target}, which is not a file`);
    }
    return { ...first, sum: entry.sum, target: first.type === 'link' ? first.target : entry.target };
  }
}
