import { createHash } from 'node:crypto';

import { hasWildcards, parseGlob, PatternError, type Glob, type Places } from '@gantry/template/glob.ts';

import type { Dialect } from '../../buildfile/dialect.ts';
import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';
import { Chosen } from './chosen.ts';
import { SumList } from './sum-list.ts';

/** Files to copy from: the context of a build, or the root of an image. Paths are relative, without `.` and `..`. */
export type SourceTree = Readonly<{
  /** The target of a path after all links; undefined for a missing one, and for links that lead to each other. */
  resolve: (path: string) => { path: string; isFolder: boolean } | undefined;
  /** The checksum of the entry at a path, links not followed, in steps; undefined for an entry without one. */
  sumInSteps: (path: string) => Generator<void, string | undefined>;
  /** The entries in a folder, in no order; links are not followed. */
  entriesIn: (folder: string) => Iterable<SourceEntry>;
  /** The beginning of the error for a missing path. */
  missing: string;
  /** A name for errors. */
  name: string;
}>;

type SourceEntry = Readonly<{ name: string; isFolder: boolean }>;

/** Sources of a COPY as written. */
export type SourcesWanted = Readonly<{
  words: readonly string[];
  /** BuildKit takes patterns that match nothing, and paths with `..` as those at the top. */
  dialect: Dialect;
  /** Patterns of files in copied folders that are left out. */
  excluded?: readonly string[];
  /** The files are copied with the folders above them, from `/./` on. */
  keepsParents?: boolean;
}>;

/** One thing to copy, and the checksum that stands for it in the history. */
export type SourceFound = Readonly<{
  path: string;
  sum: string;
  /** The pattern of files in the folder that are copied; all are without it. */
  included?: string;
}>;

const MAX_SOURCES = 100_000;
/** All of their paths together, in letters. */
const MAX_PATHS_LENGTH = 8 * 1024 * 1024;
const MAX_DEPTH = 2000;

/** The files of the sources of a COPY, in steps. Throws `invalid`. */
export function* findSourcesInSteps(tree: SourceTree, wanted: SourcesWanted): Generator<void, SourceFound[]> {
  const { words, dialect, excluded = [], keepsParents = false } = wanted;
  const isClassic = dialect === 'classic';
  const found: SourceFound[] = [];
  for (const word of words) {
    yield;
    if (isClassic && leadsOut(word)) {
      throw new EngineError('invalid', `forbidden path outside the build context: ${word} ()`);
    }
    const { source, included } = keepsParents ? withPivot(word) : { source: word };
    const path = isClassic ? source.replace(/^\//, '').replace(/^\.\//, '') : cleaned(source);
    const how = { isClassic, included, excluded };
    if (!hasWildcards(path)) found.push(yield* findOne(tree, cleaned(path), how, path));
    else for (const each of yield* matchesIn(tree, path)) found.push(yield* findOne(tree, each, how));
    refuseMany(found.length, 0);
  }
  if (found.length === 0 && isClassic) throw new EngineError('invalid', 'no source files were specified');
  return found;
}

/** `a/./b`: `b` is copied with its folders below `a`; all folders are without a pivot. */
function withPivot(word: string): { source: string; included: string } {
  const pivot = word.indexOf('/./');
  if (pivot < 0) return { source: '/', included: cleaned(word) };
  return { source: word.slice(0, pivot), included: cleaned(word.slice(pivot + '/./'.length)) };
}

/** The paths that a pattern matches, each folder before its content. */
function* matchesIn(tree: SourceTree, pattern: string): Generator<void, string[]> {
  const glob = globOf(pattern);
  const matched: string[] = [];
  let length = 0;
  function* walk(folder: string, before: Places, depth: number): Generator<void, void> {
    refuseDeep(depth);
    const inner = new Map<string, Places>();
    const names: string[] = [];
    for (const { name, isFolder } of tree.entriesIn(folder)) {
      yield;
      const places = glob.follow(before, name);
      const below = isFolder && places.length > 0 ? glob.follow(places, '/') : [];
      if (glob.isEnd(places) || below.length > 0) names.push(name);
      if (below.length > 0) inner.set(name, below);
    }
    for (const name of yield* sortInSteps(names)) {
      yield;
      const path = folder === '' ? name : `${folder}/${name}`;
      if (glob.isEnd(glob.follow(before, name))) {
        matched.push(path);
        length += path.length;
        refuseMany(matched.length, length);
      }
      const below = inner.get(name);
      if (below !== undefined) yield* walk(path, below, depth + 1);
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

/** Visits each path below a folder, in steps; `visit` returns whether those below the path are visited. */
function* visitBelow(
  tree: SourceTree,
  folder: string,
  visit: (path: string, isFolder: boolean) => Generator<void, boolean>,
  depth = 0,
): Generator<void, void> {
  refuseDeep(depth);
  for (const { name, isFolder } of tree.entriesIn(folder)) {
    yield;
    const path = folder === '' ? name : `${folder}/${name}`;
    if ((yield* visit(path, isFolder)) && isFolder) yield* visitBelow(tree, path, visit, depth + 1);
  }
}

function refuseMany(sources: number, pathsLength: number): void {
  if (sources > MAX_SOURCES) throw new EngineError('invalid', `there are more than ${MAX_SOURCES} sources`);
  if (pathsLength > MAX_PATHS_LENGTH)
    throw new EngineError('invalid', `the paths of the sources have more than ${MAX_PATHS_LENGTH} letters together`);
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

type How = Readonly<{ isClassic: boolean; included: string | undefined; excluded: readonly string[] }>;

function* findOne(tree: SourceTree, path: string, how: How, written = path): Generator<void, SourceFound> {
  const { isClassic, included, excluded } = how;
  const target = tree.resolve(path);
  if (target === undefined) throw missing(tree, written, isClassic);
  const chosen = included === undefined && excluded.length === 0 ? undefined : new Chosen({ included, excluded });
  const more = included === undefined ? {} : { included };
  if (!target.isFolder) return { path, sum: `file:${(yield* tree.sumInSteps(target.path)) ?? path}`, ...more };
  const sums = new SumList();
  const skipped = target.path === '' ? 0 : target.path.length + 1;
  function* add(each: string): Generator<void, void> {
    const end = tree.resolve(each)?.path ?? each;
    sums.add((yield* tree.sumInSteps(end)) ?? each);
  }
  if (target.path !== '') yield* add(target.path);
  yield* visitBelow(tree, target.path, function* visit(each, isFolder) {
    const inner = each.slice(skipped);
    if (chosen === undefined || chosen.includes(inner)) yield* add(each);
    return !isFolder || chosen === undefined || chosen.includes(inner) || chosen.mayHold(inner);
  });
  return { path, sum: `dir:${yield* sums.digest()}`, ...more };
}

function missing(tree: SourceTree, path: string, isClassic: boolean): EngineError {
  if (isClassic) return new EngineError('invalid', `${tree.missing}stat ${path}: file does not exist`);
  return new EngineError(
    'invalid',
    `failed to compute cache key: failed to calculate checksum of ref ${tree.name}: ${JSON.stringify(`/${path}`)}: not found`,
  );
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

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
