import { createHash } from 'node:crypto';

import { hasWildcards, parseGlob, PatternError, type Glob, type Places } from '@gantry/template/glob.ts';

import { append } from '../../lib/append.ts';
import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';

/** Files to copy from: the context of a build, or the root of an image. Paths are relative, without `.` and `..`. */
export type SourceTree = Readonly<{
  /** The target of a path after all links; undefined for a missing one, and for links that lead to each other. */
  resolve: (path: string) => { path: string; isFolder: boolean } | undefined;
  /** The checksum of the entry at a path, links not followed; undefined for an entry without one. */
  sumOf: (path: string) => string | undefined;
  /** The entries in a folder in the order of their names, in steps; links are not followed. */
  entriesIn: (folder: string) => Generator<void, readonly SourceEntry[]>;
  /** The beginning of the error for a missing path. */
  missing: string;
}>;

export type SourceEntry = Readonly<{ name: string; isFolder: boolean }>;

/** One thing to copy, and the checksum that stands for it in the history. */
export type SourceFound = Readonly<{ path: string; sum: string }>;

const MAX_SOURCES = 100_000;
const MAX_DEPTH = 2000;

/** The files of the sources of a COPY, in steps. Throws `invalid`. */
export function* findSourcesInSteps(tree: SourceTree, sources: readonly string[]): Generator<void, SourceFound[]> {
  const found: SourceFound[] = [];
  for (const source of sources) {
    yield;
    if (leadsOut(source)) {
      throw new EngineError('invalid', `forbidden path outside the build context: ${source} ()`);
    }
    const path = source.replace(/^\//, '').replace(/^\.\//, '');
    if (!hasWildcards(path)) found.push(yield* findOne(tree, cleaned(path), path));
    else for (const each of yield* matchesIn(tree, path)) found.push(yield* findOne(tree, each));
    if (found.length > MAX_SOURCES) throw new EngineError('invalid', `there are more than ${MAX_SOURCES} sources`);
  }
  if (found.length === 0) throw new EngineError('invalid', 'no source files were specified');
  return found;
}

/** The paths that a pattern matches, each folder before its content. */
function* matchesIn(tree: SourceTree, pattern: string): Generator<void, string[]> {
  const glob = globOf(pattern);
  const matched: string[] = [];
  function* walk(folder: string, before: Places, depth: number): Generator<void, void> {
    refuseDeep(depth);
    for (const { name, isFolder } of yield* tree.entriesIn(folder)) {
      yield;
      const places = glob.follow(before, name);
      if (places.length === 0) continue;
      const path = folder === '' ? name : `${folder}/${name}`;
      if (glob.isEnd(places)) matched.push(path);
      if (matched.length > MAX_SOURCES) throw new EngineError('invalid', `there are more than ${MAX_SOURCES} sources`);
      const inner = isFolder ? glob.follow(places, '/') : [];
      if (inner.length > 0) yield* walk(path, inner, depth + 1);
    }
  }
  yield* walk('', glob.begin(), 0);
  return matched;
}

function globOf(pattern: string): Glob {
  try {
    return parseGlob(pattern);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new EngineError('invalid', error.message, { cause: error });
  }
}

/** All paths below a folder, each folder before its content. */
function* pathsBelow(tree: SourceTree, folder: string, depth = 0): Generator<void, string[]> {
  refuseDeep(depth);
  const paths: string[] = [];
  for (const { name, isFolder } of yield* tree.entriesIn(folder)) {
    yield;
    const path = folder === '' ? name : `${folder}/${name}`;
    paths.push(path);
    if (isFolder) append(paths, yield* pathsBelow(tree, path, depth + 1));
  }
  return paths;
}

function refuseDeep(depth: number): void {
  if (depth > MAX_DEPTH) throw new EngineError('failed', `there are more than ${MAX_DEPTH} folders in each other`);
}

/** The checksum of all sources together. */
export function sumOfAll(found: readonly SourceFound[]): string {
  return found.length === 1 ? found[0]!.sum : `multi:${sha256(found.map(({ sum }) => sum).join(','))}`;
}

/** As in dockerd, `file/` is the file, and `..` takes back the part before it, whether or not that exists. */
function cleaned(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}

function* findOne(tree: SourceTree, path: string, written = path): Generator<void, SourceFound> {
  const target = tree.resolve(path);
  if (target === undefined) throw new EngineError('invalid', `${tree.missing}stat ${written}: file does not exist`);
  if (!target.isFolder) return { path, sum: `file:${tree.sumOf(target.path) ?? path}` };
  const sums: string[] = [];
  const add = (each: string): void => {
    const end = tree.resolve(each)?.path ?? each;
    sums.push(tree.sumOf(end) ?? each);
  };
  if (target.path !== '') add(target.path);
  for (const each of yield* pathsBelow(tree, target.path)) {
    yield;
    add(each);
  }
  return { path, sum: `dir:${yield* sumOfSums(sums)}` };
}

function leadsOut(path: string): boolean {
  let depth = 0;
  for (const part of path.split('/')) {
    if (part === '..') depth -= 1;
    else if (part !== '' && part !== '.') depth += 1;
    if (depth < 0) return true;
  }
  return false;
}

/** In the order of their bytes, for which each byte becomes a character. */
function* sumOfSums(sums: readonly string[]): Generator<void, string> {
  const bytes = sums.map((sum) => Buffer.from(sum).toString('latin1'));
  const hash = createHash('sha256');
  for (const [at, each] of (yield* sortInSteps(bytes)).entries()) {
    yield;
    hash.update(at === 0 ? each : `,${each}`, 'latin1');
  }
  return hash.digest('hex');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
