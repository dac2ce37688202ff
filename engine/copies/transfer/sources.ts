import { createHash } from 'node:crypto';

import { EngineError } from '../../lib/errors.ts';

/** Files to copy from: the context of a build, or the root of an image. Paths are relative, without `.` and `..`. */
export type SourceTree = Readonly<{
  /** The target of a path after all links; undefined for a missing one, and for links that lead to each other. */
  resolve: (path: string) => { path: string; isFolder: boolean } | undefined;
  /** The checksum of the entry at a path, links not followed; undefined for an entry without one. */
  sumOf: (path: string) => string | undefined;
  /** All paths below a folder, in the order of their names, each folder before its content; links are not followed. */
  below: (folder: string) => Iterable<string>;
  /** The beginning of the error for a missing path. */
  missing: string;
}>;

/** One thing to copy, and the checksum that stands for it in the history. */
export type SourceFound = Readonly<{ path: string; sum: string }>;

/** The files of the sources of a COPY. `matches` is for patterns. Throws `invalid`. */
export function findSources(
  tree: SourceTree,
  sources: readonly string[],
  matches: (pattern: string, path: string) => boolean,
): SourceFound[] {
  const found = sources.flatMap((source) => {
    if (leadsOut(source)) {
      throw new EngineError('invalid', `forbidden path outside the build context: ${source} ()`);
    }
    const path = source.replace(/^\//, '').replace(/^\.\//, '');
    if (!hasWildcards(path)) return [findOne(tree, cleaned(path), path)];
    return [...tree.below('')].filter((each) => matches(path, each)).map((each) => findOne(tree, each));
  });
  if (found.length === 0) throw new EngineError('invalid', 'no source files were specified');
  return found;
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

function findOne(tree: SourceTree, path: string, written = path): SourceFound {
  const target = tree.resolve(path);
  if (target === undefined) throw new EngineError('invalid', `${tree.missing}stat ${written}: file does not exist`);
  if (!target.isFolder) return { path, sum: `file:${tree.sumOf(target.path) ?? path}` };
  const inside = [...tree.below(target.path)];
  const all = target.path === '' ? inside : [target.path, ...inside];
  const sums = all.map((each) => {
    const end = tree.resolve(each)?.path ?? each;
    return tree.sumOf(end) ?? each;
  });
  return { path, sum: `dir:${sumOfSums(sums)}` };
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

function hasWildcards(path: string): boolean {
  return /(?:^|[^\\])(?:\\\\)*[*?[]/.test(path);
}

/** In the order of their bytes, for which each byte becomes a character. */
function sumOfSums(sums: readonly string[]): string {
  const bytes = sums.map((sum) => Buffer.from(sum).toString('latin1'));
  return createHash('sha256').update(bytes.toSorted().join(','), 'latin1').digest('hex');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
