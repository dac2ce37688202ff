import { existsSync, rmSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { ignorePatterns, ignores, PatternError, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { MAX_FILE_BYTES, refuseAbove } from '../../buildfile/limits.ts';
import type { Config } from '../../config/daemon-config.ts';
import type { SourceTree } from '../../copies/transfer/sources.ts';
import type { Engine } from '../../engine.ts';
import { spreadFoldersIn } from '../../host/files/spread-folders.ts';
import { unmountBelow } from '../../host/mounts/unmount-below.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { append } from '../../lib/append.ts';
import { EngineError } from '../../lib/errors.ts';
import { makeFolders } from '../../lib/folders.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { removeTree } from '../../trees/remove.ts';

type Needs = Pick<Engine, 'archives'>;
type Entry = Omit<ContextEntry, 'path'>;

const MAX_LINKS = 255;
/** Bytes of an ignore file; real ones have a thousandth. */
const MAX_IGNORE_BYTES = 256 * 1024;
const DEFAULT_FILES: readonly string[] = ['Buildfile', 'Dockerfile', 'dockerfile'];
const IGNORE_FILES: readonly string[] = ['.buildignore', '.dockerignore'];

/** The folder of all builds under way. The next start removes the leftovers of a killed daemon. */
function buildsFolder({ dataRoot }: Pick<Config, 'dataRoot'>): string {
  return join(dataRoot, 'builds');
}

export function removeOldBuilds(config: Pick<Config, 'dataRoot'>): void {
  const folder = buildsFolder(config);
  if (!existsSync(folder)) return;
  unmountBelow(folder); // first: nothing is removed through a mount
  rmSync(folder, { recursive: true, force: true });
}

/** A folder for one build, which is removed with it. */
export async function buildFolder(engine: { config: Config }): Promise<AsyncDisposable & { path: string }> {
  const builds = buildsFolder(engine.config);
  await mkdir(builds, { recursive: true, mode: 0o700 });
  spreadFoldersIn(builds);
  const path = join(builds, shortId(newId()));
  await mkdir(path, { mode: 0o700 });
  return { path, [Symbol.asyncDispose]: async () => await removeTree(path, new AbortController().signal) };
}

/**
 * The files that a client sends with a build, as they were in its archive: nothing follows links on this machine. They
 * stay in one file until a step needs them, because a build with all steps in the cache needs none.
 */
export class BuildContext {
  /** For this process; the files are there after `extract`. */
  readonly root: string;
  readonly #archives: Archives;
  readonly #spool: string;
  readonly #entries: Map<string, Entry>;
  readonly #ignored = new Map<string, Entry>();
  #extracted: Promise<void> | undefined;

  private constructor(archives: Archives, folder: string, entries: Map<string, Entry>) {
    this.#archives = archives;
    this.#spool = spoolIn(folder);
    this.root = join(folder, 'context');
    this.#entries = entries;
  }

  /** Reads an archive, compressed or not. Throws `invalid` for a bad one. */
  static async receive({ archives }: Needs, archive: AsyncIterable<Uint8Array>, folder: string): Promise<BuildContext> {
    const entries = new Map<string, Entry>();
    let failure: EngineError | undefined;
    await archives.spoolContext(archive, spoolIn(folder), (group) => (failure ??= addAll(entries, group)));
    if (failure !== undefined) throw failure;
    return new BuildContext(archives, folder, entries);
  }

  /** Extracts the files. Throws `invalid` for names and types that no file system takes. */
  async extract(): Promise<void> {
    this.#extracted ??= this.#extract();
    await this.#extracted;
  }

  get tree(): SourceTree {
    return {
      missing: 'file not found in build context or excluded by .dockerignore: ',
      resolve: (path) => this.#resolve(path),
      sumOf: (path) => this.#entries.get(path)?.sum || undefined,
      below: (folder) => inOrder(below(this.#entries, folder)),
    };
  }

  /** The text of the instruction file, by its path or one of the usual names. Throws `invalid`. */
  async instructions(file: string): Promise<{ name: string; text: string }> {
    const names = file === '' ? DEFAULT_FILES : [file];
    const name = names.find((each) => this.#resolve(each)?.isFolder === false);
    if (name === undefined) {
      throw new EngineError('invalid', `Cannot locate specified Dockerfile: ${file === '' ? 'Dockerfile' : file}`);
    }
    const text = await this.#read(name, MAX_FILE_BYTES);
    if (text === '') throw new EngineError('invalid', `the Dockerfile (${name}) cannot be empty`);
    return { name, text };
  }

  /** Leaves out what the ignore file names; `Dockerfile` and the ignore file themselves can be named too. */
  async applyIgnoreFile(): Promise<void> {
    const name = IGNORE_FILES.find((each) => this.#resolve(each)?.isFolder === false);
    if (name === undefined) return;
    const patterns = patternsIn(await this.#read(name, MAX_IGNORE_BYTES));
    if (patterns.length === 0) return;
    const ignored: string[] = [];
    const keptFolders = new Set<string>();
    for (const path of this.#entries.keys()) {
      if (ignores(patterns, path)) ignored.push(path);
      else addParents(keptFolders, path);
    }
    for (const path of ignored) {
      if (keptFolders.has(path)) continue;
      this.#ignored.set(path, this.#entries.get(path)!);
      this.#entries.delete(path);
    }
  }

  async #extract(): Promise<void> {
    makeFolders(this.root, 0o755); // steps with any user read it by RUN --mount
    const linked = this.#linked();
    const without = [...this.#ignored.keys()].filter((path) => !linked.has(path));
    await this.#archives.extractContext(this.#spool, this.root, without);
    await rm(this.#spool);
    for (const path of linked) await rm(join(this.root, path), { force: true });
  }

  /** The ignored files that have further names: they are made, and then lose their own. */
  #linked(): Set<string> {
    const linked = new Set<string>();
    const look = ({ type, target }: Entry): void => {
      if (type !== 'file' || target === '') return;
      if (this.#ignored.has(target)) linked.add(target);
    };
    for (const entry of this.#entries.values()) look(entry);
    for (const path of linked) look(this.#ignored.get(path)!); // which may be a further name itself
    return linked;
  }

  async #read(name: string, limit: number): Promise<string> {
    const { path } = this.#resolve(name)!;
    const { content } = this.#entries.get(path)!;
    if (content === undefined) throw new EngineError('invalid', `${name} is not a plain file`);
    refuseAbove(limit, content.bytes, name, 'bytes');
    await using file = await open(this.#spool, 'r');
    const { buffer } = await file.read(Buffer.alloc(content.bytes), 0, content.bytes, content.offset);
    return buffer.toString('utf8');
  }

  /** By the links of the archive alone, as if the context were the root of a file system. */
  #resolve(path: string): { path: string; isFolder: boolean } | undefined {
    const done: string[] = [];
    const left = path.split('/').toReversed();
    for (let links = 0; left.length > 0;) {
      const part = left.pop()!;
      if (part === '..') done.pop();
      if (part === '' || part === '.' || part === '..') continue;
      const here = [...done, part].join('/');
      const entry = this.#entries.get(here);
      if (entry === undefined) return undefined;
      if (entry.type !== 'link') {
        done.push(part);
        continue;
      }
      links += 1;
      if (links > MAX_LINKS) return undefined;
      if (entry.target.startsWith('/')) done.length = 0;
      append(left, entry.target.split('/').toReversed());
    }
    const found = done.join('/');
    if (found === '') return { path: '', isFolder: true };
    return { path: found, isFolder: this.#entries.get(found)!.type === 'folder' };
  }
}

/** The folders above a path, which are all there if the nearest one is. */
function addParents(folders: Set<string>, path: string): void {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const parent = path.slice(0, at);
    if (folders.has(parent)) return;
    folders.add(parent);
  }
}

function patternsIn(text: string): IgnorePattern[] {
  try {
    return ignorePatterns(text);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new EngineError('invalid', error.message, { cause: error });
  }
}

function spoolIn(folder: string): string {
  return join(folder, 'context.tar');
}

/** Returns why one of them is refused. */
function addAll(entries: Map<string, Entry>, group: readonly ContextEntry[]): EngineError | undefined {
  try {
    for (const { path, ...entry } of group) add(entries, path, entry);
    return undefined;
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
}

/** Throws `invalid` for another name of a missing file. */
function add(entries: Map<string, Entry>, path: string, entry: Entry): void {
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const parent = path.slice(0, at);
    if (entries.get(parent)?.type !== 'folder') entries.set(parent, { type: 'folder', sum: '', target: '' });
  }
  // A later entry of another kind replaces a folder.
  const replacesFolder = entry.type !== 'folder' && entries.get(path)?.type === 'folder';
  if (replacesFolder) for (const other of below(entries, path)) entries.delete(other);
  if (entry.type !== 'file' || entry.target === '') {
    entries.set(path, entry);
    return;
  }
  const first = entries.get(entry.target);
  if (first === undefined || first.type === 'folder') {
    const [name, target] = [path, entry.target].map((each) => JSON.stringify(each));
    throw new EngineError('invalid', `invalid archive: ${name} is another name of ${target}, which is not a file`);
  }
  entries.set(path, { ...first, sum: entry.sum, target: first.type === 'link' ? first.target : entry.target });
}

function* below(entries: ReadonlyMap<string, Entry>, folder: string): Generator<string> {
  const prefix = folder === '' ? '' : `${folder}/`;
  for (const path of entries.keys()) if (path.startsWith(prefix)) yield path;
}

/** Folder by folder, names in the order of their bytes. */
function inOrder(paths: Iterable<string>): string[] {
  const keys = Array.from(paths, (path) => path.replaceAll('/', '\0'));
  return keys.toSorted().map((key) => key.replaceAll('\0', '/'));
}
