import { readFileSync, rmSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import type { SourceTree } from '../../copies/transfer/sources.ts';
import type { ContextEntry } from '../../layers/threads/archive-messages.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { ignorePatterns, ignores } from './ignore.ts';

type Needs = { archives: Archives; config: Config };
type Entry = Pick<ContextEntry, 'type' | 'sum' | 'target'>;

const MOST_LINKS = 255;
const DEFAULT_FILES: readonly string[] = ['Buildfile', 'Dockerfile', 'dockerfile'];
const IGNORE_FILES: readonly string[] = ['.buildignore', '.dockerignore'];

/** The folder of all builds under way. What a killed daemon has left there is removed at the next start. */
export function buildsFolder({ dataRoot }: Pick<Config, 'dataRoot'>): string {
  return join(dataRoot, 'builds');
}

export function removeOldBuilds(config: Pick<Config, 'dataRoot'>): void {
  rmSync(buildsFolder(config), { recursive: true, force: true });
}

/** A folder for one build, which goes with it. */
export async function buildFolder(engine: { config: Config }): Promise<AsyncDisposable & { path: string }> {
  const path = join(buildsFolder(engine.config), shortId(newId()));
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { path, [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true }) };
}

/** The files that a client sends with a build, as they were in its archive: nothing follows links on this machine. */
export class BuildContext {
  /** For this process. */
  readonly root: string;
  readonly #entries: Map<string, Entry>;

  private constructor(root: string, entries: Map<string, Entry>) {
    this.root = root;
    this.#entries = entries;
  }

  /** Reads an archive, compressed or not, into a folder. Throws `invalid` for a bad one. */
  static async receive(engine: Needs, archive: AsyncIterable<Uint8Array>, folder: string): Promise<BuildContext> {
    const root = join(folder, 'context');
    await mkdir(root, { mode: 0o755 });
    const received = await engine.archives.unpackContext(archive, root);
    const entries = new Map<string, Entry>();
    for (const { path, ...entry } of received) {
      // A later entry that is no folder takes the place of a folder.
      if (entry.type !== 'folder') for (const other of below(entries, path)) entries.delete(other);
      for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
        const parent = path.slice(0, at);
        if (entries.get(parent)?.type !== 'folder') entries.set(parent, { type: 'folder', sum: '', target: '' });
      }
      entries.set(path, entry);
    }
    return new BuildContext(root, entries);
  }

  get tree(): SourceTree {
    return {
      missing: 'file not found in build context or excluded by .dockerignore: ',
      resolve: (path) => this.#resolve(path),
      sumOf: (path) => this.#entries.get(path)?.sum || undefined,
      below: (folder) => [...below(this.#entries, folder)].toSorted(byParts),
    };
  }

  /** The text of the instruction file, by its path or one of the usual names. Throws `invalid`. */
  instructions(file: string): { name: string; text: string } {
    const names = file === '' ? DEFAULT_FILES : [file];
    const name = names.find((each) => this.#resolve(each)?.isFolder === false);
    if (name === undefined) {
      throw new EngineError('invalid', `Cannot locate specified Dockerfile: ${file === '' ? 'Dockerfile' : file}`);
    }
    const text = this.#read(name);
    if (text === '') throw new EngineError('invalid', `the Dockerfile (${name}) cannot be empty`);
    return { name, text };
  }

  /** Leaves out what the ignore file names; `Dockerfile` and the ignore file themselves can be named too. */
  applyIgnoreFile(): void {
    const name = IGNORE_FILES.find((each) => this.#resolve(each)?.isFolder === false);
    if (name === undefined) return;
    const patterns = ignorePatterns(this.#read(name));
    if (patterns.length === 0) return;
    const paths = [...this.#entries.keys()];
    const kept = new Set<string>();
    for (const path of paths) {
      if (ignores(patterns, path)) continue;
      for (let each = path; each !== ''; each = each.slice(0, Math.max(each.lastIndexOf('/'), 0))) kept.add(each);
    }
    for (const path of paths) {
      if (kept.has(path)) continue;
      this.#entries.delete(path);
      rmSync(join(this.root, path), { recursive: true, force: true });
    }
  }

  #read(name: string): string {
    return readFileSync(join(this.root, this.#resolve(name)!.path), 'utf8');
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
      if (links > MOST_LINKS) throw new EngineError('invalid', `too many links in ${path}`);
      if (entry.target.startsWith('/')) done.length = 0;
      left.push(...entry.target.split('/').toReversed());
    }
    const found = done.join('/');
    if (found === '') return { path: '', isFolder: true };
    return { path: found, isFolder: this.#entries.get(found)!.type === 'folder' };
  }
}

function* below(entries: ReadonlyMap<string, Entry>, folder: string): Generator<string> {
  const prefix = folder === '' ? '' : `${folder}/`;
  for (const path of entries.keys()) if (path.startsWith(prefix)) yield path;
}

/** Folder by folder, names in the order of their bytes. */
function byParts(a: string, b: string): number {
  const [one, other] = [a.replaceAll('/', '\0'), b.replaceAll('/', '\0')];
  return one < other ? -1 : 1;
}
