import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { PatternError } from '@gantry/template/glob.ts';
import { ignorePatterns, ignores, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { packLocal, packNamed, type LocalArchive } from '../containers/local-archive.ts';

const IGNORE_FILES: readonly string[] = ['.buildignore', '.dockerignore'];
const BUILDFILES: readonly string[] = ['Buildfile', 'Dockerfile', 'dockerfile'];
/** An ignore file that is larger is the engine's to refuse. */
const MAX_TEXT_LENGTH = 1024 * 1024;
const OWNERS: readonly string[] = ['--owner=0', '--group=0'];

/**
 * The context of a build: a folder without what its ignore file names, which the engine leaves out too. The ignore file and
 * the Buildfile always come along.
 */
export async function packContext(folder: string, file: string | undefined): Promise<LocalArchive> {
  const patterns = await patternsOf(folder);
  if (patterns.length === 0) return packLocal(folder, '.', undefined, false, OWNERS);
  const always = new Set([...IGNORE_FILES, ...(file === undefined ? BUILDFILES : [file.replace(/^(?:\.?\/)+/, '')])]);
  return packNamed(folder, namesIn(folder, { patterns, always }), OWNERS);
}

/** None for a file that the engine will refuse, or that is no plain file here: it gets all, and says what is wrong. */
async function patternsOf(folder: string): Promise<IgnorePattern[]> {
  for (const name of IGNORE_FILES) {
    const path = join(folder, name);
    const found = await lstat(path).catch(() => undefined);
    if (found === undefined || found.isDirectory()) continue;
    if (!found.isFile() || found.size > MAX_TEXT_LENGTH) return [];
    try {
      return ignorePatterns(await readFile(path, 'utf8'));
    } catch (error) {
      if (error instanceof PatternError) return [];
      throw error;
    }
  }
  return [];
}

type Choice = Readonly<{ patterns: readonly IgnorePattern[]; always: ReadonlySet<string> }>;

/** The names to pack, each ended by a zero. Names that are not UTF-8 keep their bytes. */
async function* namesIn(folder: string, choice: Choice, below = Buffer.alloc(0)): AsyncGenerator<Buffer> {
  const { patterns, always } = choice;
  const hasExceptions = patterns.some(({ isException }) => isException);
  const place = Buffer.concat([Buffer.from(`${folder}/`), below]);
  for (const entry of await readdir(place, { withFileTypes: true, encoding: 'buffer' })) {
    const path = below.length === 0 ? entry.name : Buffer.concat([below, Buffer.from('/'), entry.name]);
    const text = path.toString();
    const isWanted = always.has(text) || !ignores(patterns, text);
    if (isWanted) yield Buffer.concat([Buffer.from('./'), path, Buffer.from([0])]);
    if (!entry.isDirectory()) continue;
    const mayHold = hasExceptions || [...always].some((each) => each.startsWith(`${text}/`));
    if (isWanted || mayHold) yield* namesIn(folder, choice, path);
  }
}
