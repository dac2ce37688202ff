import { closeSync, constants, fstatSync, opendirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { posix } from 'node:path';

import { parseGlob, PatternError, type Glob } from '@gantry/template/glob.ts';

import { imageRoot } from '../../builder/steps/scratch-root.ts';
import type { Engine } from '../../engine.ts';
import { holdAt, targetOf } from '../../host/files/held-files.ts';
import { holdInRoot, openRoot, readable, type BytePath } from '../../host/files/openat.ts';
import type { Image } from '../../images/store.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { Stat } from '../messages/file-sync.ts';
import { goMode } from '../session/go-mode.ts';
import type { Sent } from '../wire/message.ts';

type Needs = Pick<Engine, 'copies' | 'layers'>;
type FileStat = Sent<typeof Stat>;
/** A part of a file; without a length to its end. */
type Range = Readonly<{ offset: number; length: number }>;

/** A message of the protocol has 16 MiB. */
const MAX_READ_BYTES = 15 * 1024 * 1024;
const MAX_ENTRIES = 10_000;

/** The content of a file of a result; links are followed within it. Throws `notFound`, and `invalid` for too large a part. */
export async function readResultFile(engine: Needs, image: Image, path: string, range: Range): Promise<Buffer> {
  return await held(engine, image, path, async (fd) => {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new EngineError('invalid', `${path} is not a plain file`);
    const rest = Math.max(0, stats.size - Math.max(0, range.offset));
    const bytes = range.length > 0 ? Math.min(range.length, rest) : rest;
    if (bytes > MAX_READ_BYTES)
      throw new EngineError('invalid', `${path} has more than ${MAX_READ_BYTES} bytes: read it in parts`);
    await using file = await open(`/proc/self/fd/${fd}`, constants.O_RDONLY);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, Math.max(0, range.offset));
    return buffer.subarray(0, bytesRead);
  });
}

export async function statResultFile(engine: Needs, image: Image, path: string): Promise<FileStat> {
  return await held(engine, image, path, async (fd) => await Promise.resolve(statOf(fd, posix.basename(path))));
}

/** The entries of a folder of a result, in order; with a pattern those whose names match. */
export async function readResultFolder(
  engine: Needs,
  image: Image,
  path: string,
  pattern: string,
): Promise<FileStat[]> {
  const matches = matcherOf(pattern);
  return await held(engine, image, path, async (fd) => {
    if (!fstatSync(fd).isDirectory()) throw new EngineError('invalid', `${path} is not a directory`);
    const entries: FileStat[] = [];
    using folder = opendirSync(`/proc/self/fd/${fd}`, { encoding: 'latin1' });
    for (let next = folder.readSync(); next !== null; next = folder.readSync()) {
      const name = readable(next.name);
      if (!matches(name)) continue;
      if (entries.length === MAX_ENTRIES)
        throw new EngineError('invalid', `${path} has more than ${MAX_ENTRIES} entries`);
      entries.push(entryAt(fd, next.name, name));
    }
    return await Promise.resolve(entries.toSorted((a, b) => (a.path! < b.path! ? -1 : 1)));
  });
}

function entryAt(folder: number, name: BytePath, shown: string): FileStat {
  const entry = holdAt(folder, name);
  try {
    return statOf(entry, shown);
  } finally {
    closeSync(entry);
  }
}

/** Holds a path of a result, whatever it is, for the time of `work`. */
async function held<T>(engine: Needs, image: Image, path: string, work: (fd: number) => Promise<T>): Promise<T> {
  await using root = await imageRoot(engine, image.id);
  using fds = new DisposableStack();
  const top = fds.adopt(openRoot(root.path), closeSync);
  try {
    const inner = Buffer.from(posix.join('/', path)).toString('latin1');
    return await work(fds.adopt(holdInRoot(top, inner), closeSync));
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR'))
      throw new EngineError('notFound', `open ${path}: no such file or directory`, { cause: error });
    if (hasCode(error, 'ELOOP') || hasCode(error, 'ENAMETOOLONG'))
      throw new EngineError('invalid', `open ${path}: it cannot be followed`, { cause: error });
    throw error;
  }
}

function statOf(fd: number, path: string): FileStat {
  const stats = fstatSync(fd);
  const { mtimeNs } = fstatSync(fd, { bigint: true });
  return {
    path,
    mode: goMode(stats),
    uid: stats.uid,
    gid: stats.gid,
    size: stats.isFile() ? stats.size : 0,
    modified: mtimeNs,
    ...(stats.isSymbolicLink() && { linkName: readable(targetOf(fd)) }),
  };
}

/** Throws `invalid` for a pattern that is none. */
function matcherOf(pattern: string): (name: string) => boolean {
  if (pattern === '') return () => true;
  let glob: Glob;
  try {
    glob = parseGlob(pattern);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new EngineError('invalid', error.message, { cause: error });
  }
  return (name) => glob.matches(name);
}
