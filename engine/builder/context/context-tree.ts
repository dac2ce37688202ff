import { refuseAbove } from '../../buildfile/limits.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import { append } from '../../lib/append.ts';
import { EngineError } from '../../lib/errors.ts';
import { EntryRows } from './entry-rows.ts';

/** An entry, by its number. */
export type ContextNode = number;

const MAX_LINKS = 255;
/** Walks take a part of the stack for each. */
const MAX_DEPTH = 1000;
/**
 * Memory of all entries, by the figure below: those of 105,000 files with short names. A build that copies all of them takes
 * four times as much at its peak.
 */
const MAX_BYTES = 12 * 1024 * 1024;
/** Memory of an entry besides its name and target. */
const ENTRY_BYTES = 104;
/** Stands for bytes of a name that are no text: several names may read alike. */
const REPLACED = '\uFFFD';
const SLASH = '/'.charCodeAt(0);

/** The entries of a context: names in folders. */
export class ContextTree implements Disposable {
  readonly #rows = new EntryRows();
  /** The numbers of entries that later ones replaced, by the rows of these. */
  readonly #earlier = new Map<ContextNode, number[]>();
  readonly root: ContextNode;
  #isPlain = true;
  #bytes = 0;
  #entries = 0;
  #folders = 0;

  constructor() {
    this.root = this.#rows.add(0, Buffer.alloc(0), 0);
    this.#beFolder(this.root);
  }

  /** A later entry replaces an earlier one. Throws `invalid` for another name of a missing file, and for too many entries. */
  add({ path, ...entry }: ContextEntry): void {
    const names = partsOf(path);
    const name = names.pop()!;
    refuseAbove(MAX_DEPTH, names.length, 'the path of a file in the context', 'folders');
    let folder = this.root;
    for (const each of names) folder = this.#folderIn(folder, each);
    const isHardLink = entry.type === 'file' && entry.target !== '';
    if (isHardLink || path.includes(REPLACED)) this.#isPlain = false;
    const first = isHardLink ? this.#linkTo(path, entry.target) : undefined;
    const node = this.#rowIn(folder, name, entry.target.length);
    const wasFolder = this.typeOf(node) === 'folder';
    this.#rows.describe(node, first === undefined ? entry : { ...first, sum: entry.sum });
    const isReplaced = this.#rows.get(node, 'number') !== 0;
    if (isReplaced && wasFolder !== (entry.type === 'folder')) this.#isPlain = false;
    if (entry.type === 'folder' && !wasFolder) this.#beFolder(node);
    if (entry.type !== 'folder') this.#rows.set(node, 'first', 0);
    this.#count(node);
  }

  /** Whether each entry has a name of its own, comes behind its folder's, replaces only one of its kind, and is no hard link. */
  get isPlain(): boolean {
    return this.#isPlain;
  }

  get(path: string): ContextNode | undefined {
    const node = this.find(path);
    return node === undefined || this.isIgnored(node) ? undefined : node;
  }

  /** Also an entry that the ignore file excludes. */
  find(path: string): ContextNode | undefined {
    let node = this.root;
    for (const name of partsOf(path)) {
      node = this.#childOf(node, name);
      if (node === 0) return undefined;
    }
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
      const node = this.#childOf(done.at(-1)?.node ?? this.root, Buffer.from(name));
      if (node === 0 || this.isIgnored(node)) return undefined;
      if (this.typeOf(node) !== 'link') {
        done.push({ name, node });
        continue;
      }
      links += 1;
      if (links > MAX_LINKS) return undefined;
      const target = this.targetOf(node);
      if (target.startsWith('/')) done.length = 0;
      append(left, target.split('/').toReversed());
    }
    return { path: done.map(({ name }) => name).join('/'), node: done.at(-1)?.node ?? this.root };
  }

  /** The entries in a folder, in no order. */
  *entriesIn(folder: ContextNode): Generator<ContextNode> {
    for (let node = this.#rows.get(folder, 'first'); node !== 0; node = this.#rows.get(node, 'sibling')) {
      if (!this.isIgnored(node)) yield node;
    }
  }

  nameOf(node: ContextNode): string {
    return this.#rows.nameOf(node);
  }

  typeOf(node: ContextNode): ContextEntry['type'] {
    return this.#rows.typeOf(node);
  }

  /** The target of a link; the path of the file that a hard link names. */
  targetOf(node: ContextNode): string {
    return this.#rows.targetOf(node);
  }

  /** In hexadecimal digits; empty for a folder that no entry describes. */
  sumOf(node: ContextNode): string {
    return this.#rows.sumOf(node);
  }

  /** The place of a file's content in the archive, if it is there in one piece. */
  contentOf(node: ContextNode): ContextEntry['content'] {
    return this.#rows.contentOf(node);
  }

  isEmpty(node: ContextNode): boolean {
    return this.#rows.get(node, 'first') === 0;
  }

  /** Excludes an entry from all reads but `find`. */
  ignore(node: ContextNode): void {
    this.#rows.ignore(node);
  }

  /** Excludes an entry of an earlier context, which counts no longer. */
  remove(node: ContextNode): void {
    if (!this.isIgnored(node)) this.#bytes -= ENTRY_BYTES + this.#rows.get(node, 'nameBytes');
    this.ignore(node);
  }

  isIgnored(node: ContextNode): boolean {
    return this.#rows.isIgnored(node);
  }

  /** The paths of excluded files that have further names which are not. */
  linkedFromIgnored(): Set<string> {
    const linked = new Set<string>();
    const look = (node: ContextNode): void => {
      if (this.typeOf(node) !== 'file') return;
      const target = this.targetOf(node);
      const first = target === '' ? undefined : this.find(target);
      if (first !== undefined && this.isIgnored(first)) linked.add(target);
    };
    for (let node = 1; node <= this.#rows.count; node += 1) if (!this.isIgnored(node)) look(node);
    for (const path of linked) look(this.find(path)!); // which may be a further name itself
    return linked;
  }

  /** A bit for each entry of the archive, in its order: whether a later one has replaced it, or it is excluded. */
  unusedBits(): Uint8Array<ArrayBuffer> {
    const bits = this.ignoredBits(new Set());
    for (const number of [...this.#earlier.values()].flat()) bits[(number - 1) >> 3]! |= 1 << ((number - 1) & 7);
    return bits;
  }

  /** A bit for each entry of the archive, in its order: whether it is excluded. None are at these paths. */
  ignoredBits(without: ReadonlySet<string>): Uint8Array<ArrayBuffer> {
    const bits = new Uint8Array(Math.ceil(this.#entries / 8));
    const exceptions = new Set(Array.from(without, (path) => this.find(path)));
    const mark = (number: number): void => void (bits[(number - 1) >> 3]! |= 1 << ((number - 1) & 7));
    for (let node = 1; node <= this.#rows.count; node += 1) {
      if (!this.isIgnored(node) || exceptions.has(node)) continue;
      const number = this.#rows.get(node, 'number');
      if (number !== 0) mark(number);
      for (const each of this.#earlier.get(node) ?? []) mark(each);
    }
    return bits;
  }

  [Symbol.dispose](): void {
    this.#rows.free();
    this.#earlier.clear();
  }

  #childOf(folder: ContextNode, name: Buffer): ContextNode {
    if (this.typeOf(folder) !== 'folder') return 0;
    return this.#rows.find(this.#rows.get(folder, 'own'), name);
  }

  #folderIn(folder: ContextNode, name: Buffer): ContextNode {
    const known = this.#childOf(folder, name);
    if (known !== 0 && this.typeOf(known) === 'folder') return known;
    this.#isPlain = false;
    const made = this.#rowIn(folder, name, 0);
    this.#rows.describe(made, { type: 'folder', sum: '', target: '' });
    this.#beFolder(made);
    return made;
  }

  #rowIn(folder: ContextNode, name: Buffer, targetLength: number): ContextNode {
    this.#bytes += ENTRY_BYTES + name.length + targetLength;
    if (this.#bytes > MAX_BYTES)
      throw new EngineError(
        'invalid',
        'the context has too many entries, of some 105,000 that it may have: ignore files, or send fewer',
      );
    const known = this.#childOf(folder, name);
    if (known !== 0) return known;
    const added = this.#rows.add(this.#rows.get(folder, 'own'), name, this.#rows.get(folder, 'first'));
    this.#rows.set(folder, 'first', added);
    this.#rows.describe(added, { type: 'other', sum: '', target: '' });
    return added;
  }

  /** With a number that no entry has above it yet: the content of a folder that was replaced is not found again. */
  #beFolder(node: ContextNode): void {
    this.#folders += 1;
    this.#rows.set(node, 'own', this.#folders);
    this.#rows.set(node, 'first', 0);
  }

  /** Gives the entry's place in the archive to its row. */
  #count(node: ContextNode): void {
    this.#entries += 1;
    const before = this.#rows.get(node, 'number');
    if (before !== 0) this.#earlier.getOrInsertComputed(node, () => []).push(before);
    this.#rows.set(node, 'number', this.#entries);
  }

  #linkTo(path: string, target: string): Omit<ContextEntry, 'path'> {
    const first = this.find(target);
    const type = first === undefined ? 'folder' : this.typeOf(first);
    if (first === undefined || type === 'folder') {
      const [name, to] = [path, target].map((each) => JSON.stringify(each));
      throw new EngineError('invalid', `invalid archive: ${name} is another name of ${to}, which is not a file`);
    }
    const content = this.contentOf(first);
    return { type, sum: '', target: type === 'link' ? this.targetOf(first) : target, ...(content && { content }) };
  }
}

/** The names of a path, as bytes. */
function partsOf(path: string): Buffer[] {
  const bytes = Buffer.from(path);
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(SLASH); at >= 0; at = bytes.indexOf(SLASH, from)) {
    parts.push(bytes.subarray(from, at));
    from = at + 1;
  }
  parts.push(bytes.subarray(from));
  return parts;
}
