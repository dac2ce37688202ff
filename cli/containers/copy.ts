import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import type { Connection } from '@gantry/client/connection.ts';
import { getArchive, isFolder, isLink, putArchive, statPath } from '@gantry/client/files.ts';

import { command } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import { sizeText } from '../output/human.ts';
import { packLocal, unpackLocal } from './local-archive.ts';

type Flags = { followLinks: boolean; archive: boolean; quiet: boolean };
/** `container` is undefined for this machine; `-` as a path is stdin or stdout. */
type Place = { container: string | undefined; path: string };
type Source = { isFolder: boolean; /** It ends in `/.`. */ isContent: boolean; base: string };
type Target = { path: string; exists: boolean; isFolder: boolean; /** It ends in a slash. */ wantsFolder: boolean };
/** The folder that takes the archive, and the first part of its names, if it is another one. */
type Plan = { folder: string; newName: string | undefined };

/** `gantry cp`. */
export const cp = command({
  words: 'CONTAINER:PATH PATH|-  or  PATH|- CONTAINER:PATH',
  count: [2, 2],
  flags: {
    archive: {
      kind: 'boolean',
      short: 'a',
      help: 'Keep owners: those of the container on the way out; its user on the way in',
    },
    'follow-link': { kind: 'boolean', short: 'L', help: 'Follow a link in PATH' },
    quiet: { kind: 'boolean', short: 'q', help: 'No progress' },
  },
  offers: 'container',
  about: 'A path that ends in /. is the content of a folder; - is an archive.',
  examples: ['gantry cp web:/etc/nginx .', 'gantry cp index.html web:/srv/', 'tar -c site | gantry cp - web:/srv'],
  run: async ({ connection }, [from = '', to = ''], { archive, quiet, 'follow-link': followLinks }) => {
    const [source, target] = [placeOf(from), placeOf(to)];
    const flags = { archive, quiet, followLinks };
    if (source.container !== undefined && target.container !== undefined) {
      throw new UsageError('copying between containers is not supported');
    }
    if (source.container !== undefined) await copyOut(connection, source.container, source.path, target.path, flags);
    else if (target.container !== undefined)
      await copyIn(connection, source.path, target.container, target.path, flags);
    else throw new UsageError('must specify at least one container source');
  },
});

function placeOf(word: string): Place {
  const colon = word.indexOf(':');
  const isHere = isAbsolute(word) || colon < 0 || word.startsWith('.');
  return isHere
    ? { container: undefined, path: word }
    : { container: word.slice(0, colon), path: word.slice(colon + 1) };
}

async function copyOut(engine: Connection, ref: string, from: string, to: string, flags: Flags): Promise<void> {
  let path = from;
  const found = await statPath(engine, ref, path);
  if (flags.followLinks && found !== undefined && isLink(found)) path = found.linkTarget;
  const there = path === from ? found : await statPath(engine, ref, path);
  const archive = await getArchive(engine, ref, path); // reports a missing path
  if (to === '-') {
    if (process.stdout.isTTY) throw new UsageError('refusing to write an archive to a terminal: redirect');
    await pipeline(archive, process.stdout, { end: false });
    return;
  }
  const source = { isFolder: there !== undefined && isFolder(there), isContent: isContentOf(from), base: baseOf(from) };
  const { folder, newName } = planned(source, await localTarget(to), path === from ? undefined : source.base);
  await unpackLocal(countBytes(archive, flags, `from ${ref}`), folder, newName, flags.archive);
}

async function copyIn(engine: Connection, from: string, ref: string, to: string, flags: Flags): Promise<void> {
  const target = await containerTarget(engine, ref, to);
  if (from === '-') {
    if (process.stdin.isTTY) throw new UsageError('stdin is a terminal, not an archive: redirect');
    if (!target.isFolder) throw new Exit(EXIT.failed, `destination "${ref}:${to}" must be a directory`);
    await putArchive(engine, ref, { path: target.path, archive: process.stdin, toUser: flags.archive });
    return;
  }
  const local = await localSource(from, flags.followLinks);
  const source = { isFolder: local.isFolder, isContent: isContentOf(from), base: baseOf(resolve(from)) };
  const { folder, newName } = planned(source, target, local.name === source.base ? undefined : source.base);
  const name = source.isContent ? '.' : local.name;
  const packed = packLocal(source.isContent ? local.path : local.folder, name, newName, false);
  const sent = putArchive(engine, ref, {
    path: folder,
    archive: countBytes(packed.stream, flags, `to ${ref}`),
    toUser: flags.archive,
  });
  await Promise.all([sent, packed.ended]);
}

/** As in docker, the meaning of the target depends on what exists there. */
function planned(source: Source, target: Target, otherName: string | undefined): Plan {
  if (target.exists && target.isFolder) {
    return { folder: target.path, newName: source.isContent ? undefined : otherName };
  }
  if (source.isFolder && target.exists) throw new Exit(EXIT.failed, 'cannot copy directory');
  if (!source.isFolder && target.wantsFolder) throw new Exit(EXIT.failed, 'no such directory');
  return { folder: dirname(target.path), newName: baseOf(target.path) };
}

async function containerTarget(engine: Connection, ref: string, to: string): Promise<Target> {
  const wantsFolder = to.endsWith('/') || isContentOf(to);
  const found = await statPath(engine, ref, to);
  if (found === undefined || !isLink(found)) return targetAt(to, found && isFolder(found), wantsFolder);
  const behind = await statPath(engine, ref, found.linkTarget);
  return targetAt(found.linkTarget, behind && isFolder(behind), wantsFolder);
}

async function localTarget(to: string): Promise<Target> {
  const wantsFolder = to.endsWith('/') || isContentOf(to);
  const found = await stat(to).catch(() => undefined);
  if (found !== undefined) return targetAt(await realpath(to), found.isDirectory(), wantsFolder);
  if (!(await stat(dirname(resolve(to))).catch(() => undefined))?.isDirectory()) {
    throw new Exit(EXIT.failed, `invalid output path: directory "${dirname(resolve(to))}" does not exist`);
  }
  return targetAt(resolve(to), undefined, wantsFolder);
}

function targetAt(path: string, isFolderThere: boolean | undefined, wantsFolder: boolean): Target {
  return { path, exists: isFolderThere !== undefined, isFolder: isFolderThere === true, wantsFolder };
}

async function localSource(
  from: string,
  followLinks: boolean,
): Promise<{ path: string; folder: string; name: string; isFolder: boolean }> {
  const asFolder = from.endsWith('/') || isContentOf(from);
  const look = followLinks || asFolder ? stat : lstat;
  const found = await look(from).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw new Exit(EXIT.failed, `${from}: ${reasonOf(error)}`);
    throw new Exit(EXIT.failed, `${from}: no such file or directory`);
  });
  const path = look === stat ? await realpath(from) : resolve(from);
  return { path, folder: dirname(path), name: basename(path) || '.', isFolder: found.isDirectory() };
}

function isContentOf(path: string): boolean {
  return path === '.' || path.endsWith('/.');
}

function baseOf(path: string): string {
  return basename(join('/', path));
}

/** With the progress as a line on the terminal. */
function countBytes(archive: Readable, { quiet }: Flags, where: string): Readable {
  if (quiet || !process.stderr.isTTY) return archive;
  let bytes = 0;
  let told = 0;
  const tell = (end: string): void =>
    void process.stderr.write(`\r\u001b[KCopying ${where} - ${sizeText(bytes)}${end}`);
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (Date.now() - told > 100) {
        told = Date.now();
        tell('');
      }
      done(null, chunk);
    },
    flush(done) {
      tell('\n');
      done();
    },
  });
  archive.on('error', (error) => counter.destroy(error));
  return archive.pipe(counter);
}
