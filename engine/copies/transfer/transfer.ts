import { closeSync, fstatSync, readSync } from 'node:fs';

import { holdAt, openHeld, setOwnerAndMode } from '../../host/files/held-files.ts';
import { holdInRoot, mkdirAt, readable, setTimesAt, type BytePath, type Timespec } from '../../host/files/openat.ts';
import { pack, type Choice } from '../../layers/pack/pack.ts';
import type { TarEntry } from '../../layers/tar/tar-header.ts';
import { TarReader, type TarSink } from '../../layers/tar/tar-reader.ts';
import { decompressed } from '../../layers/threads/compression.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { changedMode, type ModeChange } from '../../lib/notations/file-mode.ts';
import { innerPathOf } from '../paths.ts';
import { Placer } from '../place.ts';
import type { View } from '../view.ts';
import { Chosen } from './chosen.ts';
import type { SourceFound } from './sources.ts';

/** A copy of files of one root into another, as by COPY and ADD. */
export type Transfer = Readonly<{
  /** Path of the root to copy from, for this process: a context or an image's mounted root. */
  from: string;
  /** Paths in that root; links are followed, also at the end. */
  paths: readonly Pick<SourceFound, 'path' | 'included'>[];
  /** Patterns of files in copied folders that are left out. */
  excluded?: readonly string[];
  /** Absolute. With a slash at its end it is a folder. */
  destination: string;
  /** Archives are extracted. */
  extracts: boolean;
  /** The owner of all files and of folders created on the way; without it, the files keep theirs. */
  owner?: Readonly<{ uid: number; gid: number }>;
  /** The owner is one that the file names, and not the default. */
  hasOwner?: boolean;
  /** Permissions of everything that is copied. */
  mode?: ModeChange;
  /** As in BuildKit: a copied folder gives its time to the destination, and nothing replaces another kind of file. */
  isBuildkit?: boolean;
}>;

export const LIMITS = { bytes: 2 ** 46, entries: 2 ** 28 };
const CHUNK_BYTES = 1024 * 1024;
const ROOT = { uid: 0, gid: 0 };

/** Its client has left. */
export class CopyCanceled extends EngineError {
  constructor() {
    super('failed', 'the copy was canceled');
  }
}

/** Gives other work of the thread its turn. Throws `CopyCanceled` when the result is no longer wanted. */
export type Pause = () => Promise<void>;

/** Copies within this thread. Throws `invalid` for a damaged archive. */
export async function transfer(source: View, target: View, work: Transfer, pause: Pause): Promise<void> {
  for (const { path, included } of work.paths) {
    const held = holdInRoot(source.root, bytesOf(path));
    try {
      if (fstatSync(held).isDirectory()) await copyFolder(held, target, { ...work, included }, pause);
      else if (!(work.extracts && (await extractArchive(held, target, work, pause))))
        await copyFile({ held, path }, target, work, pause);
    } finally {
      closeSync(held);
    }
  }
}

/**
 * Creates a folder with its parents, following links; existing ones stay unchanged. Throws `invalid` for anything but a
 * folder on the way.
 */
export function makeFolder(target: View, path: string, owner: { uid: number; gid: number } = ROOT): void {
  const parts = target.endOf(innerPathOf(path).parts);
  for (let length = 1; length <= parts.length; length += 1) {
    makeOne(target.root, parts.slice(0, length), owner);
  }
}

function makeOne(root: number, parts: readonly BytePath[], owner: { uid: number; gid: number }): void {
  const above = holdInRoot(root, parts.slice(0, -1).join('/'));
  const name = parts.at(-1)!;
  try {
    mkdirAt(above, name, 0o755);
    const made = holdAt(above, name);
    try {
      setOwnerAndMode(made, { ...owner, mode: 0o755 });
    } finally {
      closeSync(made);
    }
  } catch (error) {
    if (hasCode(error, 'ENOTDIR')) throw notFolder(parts.slice(0, -1));
    if (!hasCode(error, 'EEXIST')) throw error;
    const there = holdAt(above, name);
    try {
      if (!fstatSync(there).isDirectory()) throw notFolder(parts);
    } finally {
      closeSync(there);
    }
  } finally {
    closeSync(above);
  }
}

function notFolder(parts: readonly BytePath[]): EngineError {
  return new EngineError('invalid', `Cannot mkdir: /${readable(parts.join('/'))} is not a directory`);
}

async function copyFolder(
  held: number,
  target: View,
  work: Transfer & { included: string | undefined },
  pause: Pause,
): Promise<void> {
  const { destination, owner, mode, included, excluded = [], isBuildkit = false } = work;
  // Folders on the way belong to root, as in docker.
  makeFolder(target, `${destination}/..`);
  makeFolder(target, destination, owner);
  const choice = included === undefined && excluded.length === 0 ? undefined : choiceOf({ included, excluded });
  await place(
    { held, name: undefined },
    target,
    { path: destination, owner, mode, choice, keepsKinds: isBuildkit },
    pause,
  );
  if (isBuildkit) setFolderTime(target, destination, timeOf(held));
}

function choiceOf(patterns: ConstructorParameters<typeof Chosen>[0]): Choice {
  const chosen = new Chosen(patterns);
  return { includes: (path) => chosen.includes(readable(path)), mayHold: (path) => chosen.mayHold(readable(path)) };
}

function timeOf(held: number): Timespec {
  const { mtimeNs } = fstatSync(held, { bigint: true });
  return { seconds: Number(mtimeNs / 1_000_000_000n), nanoseconds: Number(mtimeNs % 1_000_000_000n) };
}

/** Gives a copied folder's time to the destination. The root keeps its own: layers have no entry for it. */
export function setFolderTime(target: View, destination: string, time: Timespec): void {
  const parts = target.endOf(innerPathOf(destination).parts);
  const name = parts.at(-1);
  if (name === undefined) return;
  const above = holdInRoot(target.root, parts.slice(0, -1).join('/'));
  try {
    setTimesAt(above, name, time);
  } finally {
    closeSync(above);
  }
}

async function copyFile(
  { held, path }: { held: number; path: string },
  target: View,
  { destination, owner, mode, isBuildkit = false }: Transfer,
  pause: Pause,
): Promise<void> {
  const { place: where, name } = filePlace(target, destination, owner);
  const source = { held, name: name ?? baseOf(path) };
  await place(source, target, { path: where, owner, mode, keepsKinds: isBuildkit }, pause);
}

/** The last name of a path. */
export function baseOf(path: string): BytePath {
  return bytesOf(path)
    .split('/')
    .findLast((part) => part !== '' && part !== '.')!;
}

/** The folder of a copied file, which is made, and its name there; undefined: its own. */
export function filePlace(
  target: View,
  destination: string,
  owner: Transfer['owner'],
): { place: string; name: BytePath | undefined } {
  const { parts } = innerPathOf(destination);
  const isInside = destination.endsWith('/') || isExistingFolder(target, destination);
  const parent = `/${readable((isInside ? parts : parts.slice(0, -1)).join('/'))}`;
  makeFolder(target, parent, owner);
  if (isInside) return { place: parent, name: undefined };
  const end = target.endOf(parts);
  return { place: `/${readable(end.slice(0, -1).join('/'))}`, name: end.at(-1) };
}

type Where = Readonly<{
  path: string;
  owner: Transfer['owner'] | undefined;
  mode: ModeChange | undefined;
  choice?: Choice | undefined;
  /** No file replaces a folder, and no folder a file. */
  keepsKinds: boolean;
}>;

async function place(
  source: { held: number; name: BytePath | undefined },
  target: View,
  { path, owner, mode, choice, keepsKinds }: Where,
  pause: Pause,
): Promise<void> {
  const options = { path, keepsKinds, ...(owner !== undefined && { owner }) };
  using placer = new Placer(target, options);
  const sink = mode === undefined ? placer : withMode(placer, mode);
  const reader = new TarReader(sink, LIMITS);
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES); // read before the next chunk is asked for
  for (const chunk of pack(source, () => buffer, { choice })) {
    reader.push(chunk);
    await pause();
  }
  reader.end();
  placer.complete();
}

export function withMode(placer: Placer, change: ModeChange): TarSink {
  return {
    begin: (entry: TarEntry) =>
      placer.begin({ ...entry, mode: changedMode(change, entry.mode, entry.type === 'directory') }),
    data: (chunk, position) => placer.data(chunk, position),
    finish: () => placer.finish(),
  };
}

function isExistingFolder(target: View, path: string): boolean {
  try {
    const held = holdInRoot(target.root, innerPathOf(path).parts.join('/'));
    try {
      return fstatSync(held).isDirectory();
    } finally {
      closeSync(held);
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return false;
    throw error;
  }
}

/** Returns whether it was an archive: the first header is checked before anything is written. */
async function extractArchive(held: number, target: View, work: Transfer, pause: Pause): Promise<boolean> {
  const { destination, owner, isBuildkit = false } = work;
  // With the owner of `--chown`; without it the files keep theirs, which the classic builder does in any case.
  const given = isBuildkit && work.hasOwner === true ? { owner } : {};
  if (!fstatSync(held).isFile()) return false;
  const fd = openHeld(held);
  try {
    if (!(await isArchive(fd, pause))) return false;
    makeFolder(target, destination, given.owner);
    using placer = new Placer(target, {
      path: destination,
      keepsKinds: false,
      ...(given.owner && { owner: given.owner }),
    });
    const limits = given.owner === undefined ? { ...LIMITS, idMap: target.bounds } : LIMITS;
    const reader = new TarReader(placer, limits);
    for await (const chunk of decompressed(chunksOf(fd))) {
      reader.push(chunk);
      await pause();
    }
    reader.end();
    placer.complete();
    return true;
  } finally {
    closeSync(fd);
  }
}

class FirstEntry extends Error {}

function stopAtFirst(): never {
  throw new FirstEntry();
}

async function isArchive(fd: number, pause: Pause): Promise<boolean> {
  const reader = new TarReader({ begin: stopAtFirst, data: stopAtFirst, finish: stopAtFirst }, LIMITS);
  try {
    for await (const chunk of decompressed(chunksOf(fd))) {
      reader.push(chunk);
      if (reader.isOver) return false;
      await pause();
    }
  } catch (error) {
    if (error instanceof CopyCanceled) throw error;
    return error instanceof FirstEntry;
  }
  return false; // without an entry it is not an archive
}

async function* chunksOf(fd: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  for (let position = 0; ;) {
    const read = readSync(fd, buffer, 0, CHUNK_BYTES, position);
    if (read === 0) return;
    position += read;
    yield buffer.subarray(0, read);
  }
}

export function bytesOf(path: string): BytePath {
  return Buffer.from(path).toString('latin1');
}
