import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { PatternError } from '@gantry/template/glob.ts';
import { ignorePatterns, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { MAX_FILE_BYTES, refuseAbove } from '../../buildfile/limits.ts';
import type { Config } from '../../config/daemon-config.ts';
import type { Archived } from '../../copies/transfer/from-archive.ts';
import type { SourceFound, SourceTree } from '../../copies/transfer/sources.ts';
import type { Engine } from '../../engine.ts';
import { spreadFoldersIn } from '../../host/files/spread-folders.ts';
import { unmountBelow } from '../../host/mounts/unmount-below.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { runInSlices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { makeFolders } from '../../lib/folders.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { removeTree } from '../../trees/remove.ts';
import { ContextTree } from './context-tree.ts';
import { removeIgnored } from './ignored-entries.ts';
import type { ContextFiles } from './kept-contexts.ts';
import { entriesIn, readEntries, remove, spool, spoolIn } from './spooled-entries.ts';

type Needs = Pick<Engine, 'archives'>;
type Parts = Readonly<{ folder: string; tree: ContextTree; signal: AbortSignal }>;

/** Bytes of an ignore file; real ones have a thousandth. */
const MAX_IGNORE_BYTES = 256 * 1024;
/** A build with more copies reads fewer bytes if the files are extracted once. */
const MAX_ARCHIVE_READS = 4;
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
export class BuildContext implements Disposable {
  /** For this process; the files are there after `extract`. */
  readonly root: string;
  readonly #archives: Archives;
  readonly #spool: string;
  readonly #tree: ContextTree;
  readonly #signal: AbortSignal;
  #hasIgnored = false;
  #extracted: Promise<void> | undefined;
  #archiveReads = 0;

  private constructor(archives: Archives, { folder, tree, signal }: Parts) {
    this.#archives = archives;
    this.#signal = signal;
    this.#spool = spoolIn(folder);
    this.root = join(folder, 'context');
    this.#tree = tree;
  }

  /** Reads an archive, compressed or not. Throws `invalid` for a bad one. `signal` ends it, and later the extraction. */
  static async receive(
    { archives }: Needs,
    archive: AsyncIterable<Uint8Array>,
    folder: string,
    signal: AbortSignal,
  ): Promise<BuildContext> {
    const tree = new ContextTree();
    using undo = new DisposableStack();
    undo.use(tree);
    await spool(archives, archive, { tree, folder, behind: 0, signal });
    undo.move();
    return new BuildContext(archives, { folder, tree, signal });
  }

  /** The context of an earlier build, whose `files` are in the folder. */
  static async again({ archives }: Needs, folder: string, signal: AbortSignal): Promise<BuildContext> {
    const tree = new ContextTree();
    using undo = new DisposableStack();
    undo.use(tree);
    const hasRemoved = await readEntries(tree, folder, signal);
    undo.move();
    const context = new BuildContext(archives, { folder, tree, signal });
    context.#hasIgnored = hasRemoved;
    return context;
  }

  /**
   * Like `again`, for a context that has changed since: without the entries at the `removed` paths, and with those of an archive,
   * which is written `behind` so many bytes of the earlier one.
   */
  static async changed(
    { archives }: Needs,
    archive: AsyncIterable<Uint8Array>,
    { folder, behind, removed }: Readonly<{ folder: string; behind: number; removed: readonly string[] }>,
    signal: AbortSignal,
  ): Promise<BuildContext> {
    const tree = new ContextTree();
    using undo = new DisposableStack();
    undo.use(tree);
    const hasRemoved = await readEntries(tree, folder, signal);
    remove(tree, removed);
    if (removed.length > 0) appendFileSync(entriesIn(folder), `${JSON.stringify({ removed })}\n`);
    await spool(archives, archive, { tree, folder, behind, signal });
    undo.move();
    const context = new BuildContext(archives, { folder, tree, signal });
    context.#hasIgnored = hasRemoved || removed.length > 0;
    return context;
  }

  /** The files of a context in the folder of its build. */
  static filesIn(folder: string): ContextFiles {
    return { archive: spoolIn(folder), entries: entriesIn(folder) };
  }

  /**
   * The sources of a COPY in the archive, opened for `resources`; undefined where the files have to be extracted: for
   * patterns, files that are copied twice, archives with names that mean another entry, and builds that read it again and again.
   */
  async archived(sources: readonly SourceFound[], resources: AsyncDisposableStack): Promise<Archived | undefined> {
    if (this.#extracted !== undefined || !this.#tree.isPlain || this.#archiveReads >= MAX_ARCHIVE_READS)
      return undefined;
    const found = sources.map(({ path, included }) => ({ name: path, included, ...this.#resolve(path) }));
    const files = found.flatMap(({ name, path }) => (path === undefined ? [] : { name, path }));
    const [names, paths] = [files.map(({ name }) => basename(name)), files.map(({ path }) => path)];
    const isDistinct = [names, paths].every((each) => new Set(each).size === files.length);
    const isFolder = found.some((each) => each.isFolder);
    if (files.length === 0 || files.length < found.length || !isDistinct) return undefined;
    if ((isFolder && files.length > 1) || found.some(({ included }) => included !== undefined)) return undefined;
    this.#archiveReads += 1;
    const { fd } = resources.use(await open(this.#spool, 'r'));
    return { fd, without: this.#tree.unusedBits(), files, isFolder };
  }

  /** Extracts the files. Throws `invalid` for names and types that no file system takes. */
  async extract(): Promise<void> {
    this.#extracted ??= this.#extract();
    await this.#extracted;
  }

  get tree(): SourceTree {
    const tree = this.#tree;
    return {
      missing: 'file not found in build context or excluded by .dockerignore: ',
      name: 'context',
      resolve: (path) => this.#resolve(path),
      *sumInSteps(path) {
        yield; // it is known already
        const node = tree.get(path);
        return node === undefined ? undefined : tree.sumOf(node) || undefined;
      },
      *entriesIn(folder) {
        const node = folder === '' ? tree.root : tree.get(folder)!;
        for (const each of tree.entriesIn(node))
          yield { name: tree.nameOf(each), isFolder: tree.typeOf(each) === 'folder' };
      },
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
    await runInSlices(removeIgnored(this.#tree, patterns), this.#signal);
    this.#hasIgnored = true;
  }

  [Symbol.dispose](): void {
    this.#tree[Symbol.dispose]();
  }

  async #extract(): Promise<void> {
    makeFolders(this.root, 0o755); // steps with any user read it by RUN --mount
    const linked = this.#hasIgnored ? this.#tree.linkedFromIgnored() : new Set<string>();
    const without = this.#hasIgnored ? this.#tree.ignoredBits(linked) : undefined;
    await this.#archives.extractContext(this.#spool, this.root, { without, signal: this.#signal });
    await rm(this.#spool);
    for (const path of linked) await rm(join(this.root, path), { force: true }); // they were made for their further names
  }

  async #read(name: string, limit: number): Promise<string> {
    const content = this.#tree.contentOf(this.#tree.resolve(name)!.node);
    if (content === undefined) throw new EngineError('invalid', `${name} is not a plain file`);
    const { offset, bytes } = content;
    refuseAbove(limit, bytes, name, 'bytes');
    await using file = await open(this.#spool, 'r');
    const { buffer } = await file.read(Buffer.alloc(bytes), 0, bytes, offset);
    return buffer.toString('utf8');
  }

  #resolve(path: string): { path: string; isFolder: boolean } | undefined {
    const found = this.#tree.resolve(path);
    return found && { path: found.path, isFolder: this.#tree.typeOf(found.node) === 'folder' };
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
