import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { PatternError } from '@gantry/template/glob.ts';
import { ignorePatterns, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { MAX_FILE_BYTES, refuseAbove } from '../../buildfile/limits.ts';
import type { Config } from '../../config/daemon-config.ts';
import type { SourceTree } from '../../copies/transfer/sources.ts';
import type { Engine } from '../../engine.ts';
import { spreadFoldersIn } from '../../host/files/spread-folders.ts';
import { unmountBelow } from '../../host/mounts/unmount-below.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { runInSlices, Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { makeFolders } from '../../lib/folders.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { removeTree } from '../../trees/remove.ts';
import { ContextTree } from './context-tree.ts';
import { removeIgnored } from './ignored-entries.ts';
import type { ContextFiles } from './kept-contexts.ts';

type Needs = Pick<Engine, 'archives'>;
type Parts = Readonly<{ folder: string; tree: ContextTree; signal: AbortSignal }>;

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
export class BuildContext implements Disposable {
  /** For this process; the files are there after `extract`. */
  readonly root: string;
  readonly #archives: Archives;
  readonly #spool: string;
  readonly #tree: ContextTree;
  readonly #signal: AbortSignal;
  #hasIgnored = false;
  #extracted: Promise<void> | undefined;

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
    using written = new DisposableStack();
    const entries = written.adopt(openSync(entriesIn(folder), 'wx', 0o600), closeSync);
    const refused = new AbortController();
    let failure: EngineError | undefined;
    const add = (group: readonly ContextEntry[]): void => {
      failure ??= addAll(tree, group);
      writeSync(entries, `${JSON.stringify(group)}\n`);
      if (failure !== undefined) refused.abort(failure);
    };
    try {
      await archives.spoolContext(archive, spoolIn(folder), add, AbortSignal.any([signal, refused.signal]));
    } catch (error) {
      throw failure ?? error;
    }
    if (failure !== undefined) throw failure;
    undo.move();
    return new BuildContext(archives, { folder, tree, signal });
  }

  /** The context of an earlier build, whose `files` are in the folder. */
  static async again({ archives }: Needs, folder: string, signal: AbortSignal): Promise<BuildContext> {
    const tree = new ContextTree();
    using undo = new DisposableStack();
    undo.use(tree);
    const slices = new Slices(signal);
    await using file = await open(entriesIn(folder), 'r');
    for await (const line of file.readLines()) {
      const failure = addAll(tree, JSON.parse(line) as ContextEntry[]);
      if (failure !== undefined) throw failure;
      if (slices.isOver) await slices.pause();
    }
    undo.move();
    return new BuildContext(archives, { folder, tree, signal });
  }

  /** The files of a context in the folder of its build. */
  static filesIn(folder: string): ContextFiles {
    return { archive: spoolIn(folder), entries: entriesIn(folder) };
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

function entriesIn(folder: string): string {
  return join(folder, 'context.entries');
}

function spoolIn(folder: string): string {
  return join(folder, 'context.tar');
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
