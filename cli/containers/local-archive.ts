import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { EXIT, Exit } from '../exit-codes.ts';

/** An archive that the system's tar writes, and how it ended. */
export type LocalArchive = { stream: Readable; ended: Promise<void> };

/** Packs `name` of a folder, under another name if given; `.` is the folder's content; `more`: words for tar. */
export function packLocal(
  folder: string,
  name: string,
  newName: string | undefined,
  followLinks: boolean,
  more: readonly string[] = [],
): LocalArchive {
  const words = ['-c', '-C', folder, '--format=pax', '--sparse', '--numeric-owner', ...more, ...renaming(newName)];
  if (followLinks) words.push('--hard-dereference');
  const tar = spawn('tar', [...words, `--add-file=${name}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  return { stream: tar.stdout, ended: waitForEnd(tar) };
}

/** Packs what is named of a folder, its paths in bytes, and nothing below it that is not named too. */
export function packNamed(folder: string, names: AsyncIterable<Buffer>, more: readonly string[] = []): LocalArchive {
  const words = ['-c', '-C', folder, '--format=pax', '--sparse', '--numeric-owner', ...more];
  const chosen = ['--no-recursion', '--null', '--verbatim-files-from', '--files-from=-'];
  const tar = spawn('tar', [...words, ...chosen], { stdio: ['pipe', 'pipe', 'pipe'] });
  const end = waitForEnd(tar);
  const named = pipeline(names, tar.stdin).catch((error: unknown) => {
    tar.kill(); // without all names it is another archive
    throw error;
  });
  return { stream: tar.stdout, ended: bothEnded(named, end) };
}

/** tar's message explains why it did not take all names; otherwise the names are the reason. */
async function bothEnded(named: Promise<void>, end: Promise<void>): Promise<void> {
  const [names, tar] = await Promise.allSettled([named, end]);
  if (names.status === 'rejected' && !isClosed(names.reason)) throw names.reason;
  if (tar.status === 'rejected') throw tar.reason;
}

function isClosed(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String(error.code))
  );
}

/** Unpacks into a folder; with a new name, the first part of each path is replaced by it. */
export async function unpackLocal(
  archive: Readable,
  folder: string,
  newName: string | undefined,
  keepOwner: boolean,
): Promise<void> {
  const owner = keepOwner ? '--same-owner' : '--no-same-owner';
  const words = ['-x', '-p', owner, '--numeric-owner', '-C', folder, ...renaming(newName)];
  const tar = spawn('tar', words, { stdio: ['pipe', 'ignore', 'pipe'] });
  const end = waitForEnd(tar);
  feed(archive, tar.stdin);
  const broken = once(archive, 'end').catch((error: unknown) => {
    tar.stdin.destroy();
    throw error;
  });
  await Promise.all([end.catch(async (error: unknown) => await Promise.race([broken, Promise.reject(error)])), broken]);
}

/** Only in the entries' names, not in targets of links. */
function renaming(name: string | undefined): string[] {
  if (name === undefined) return [];
  return [`--transform=s|^[^/]*|${name.replaceAll(/[\\&|]/g, String.raw`\$&`)}|SH`];
}

function feed(archive: Readable, tar: Writable): void {
  tar.on('error', () => archive.resume()); // tar reports the reason
  archive.pipe(tar);
}

async function waitForEnd(tar: ChildProcess): Promise<void> {
  let complaint = '';
  tar.stderr!.on('data', (text: Buffer) => (complaint = (complaint + text.toString()).slice(0, 2000)));
  const [code] = (await once(tar, 'close')) as [number | null];
  if (code !== 0) throw new Exit(EXIT.failed, complaint.trim().replaceAll(/^tar: /gm, '') || `tar ended with ${code}`);
}
