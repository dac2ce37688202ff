import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat } from 'node:fs/promises';
import { createInterface } from 'node:readline';

import { hasCode } from '../lib/errors.ts';
import { OpenFolder } from './open-folder.ts';

/** So much is looked at in the process; a larger or deeper tree is left to a child. */
const SMALL_TREE = { entries: 256, depth: 16 };

/** Bytes of all files below a folder, however deep; a file with several names counts once. Folders count nothing. */
export async function bytesBelow(path: string): Promise<number> {
  const sum = new Sum();
  await using folder = await OpenFolder.open(path);
  if (await addEntries(folder, sum, SMALL_TREE.depth, { entries: SMALL_TREE.entries })) return sum.bytes;
  return await bytesByFind(path);
}

class Sum {
  bytes = 0;
  readonly #counted = new Set<string>();

  add(names: number, file: string, bytes: number): void {
    if (names > 1) {
      if (this.#counted.has(file)) return;
      this.#counted.add(file);
    }
    this.bytes += bytes;
  }
}

/** Returns whether the tree is small enough for that. */
async function addEntries(folder: OpenFolder, sum: Sum, depth: number, left: { entries: number }): Promise<boolean> {
  for await (const entry of folder.entries()) {
    if (left.entries === 0 || depth === 0) return false;
    left.entries -= 1;
    try {
      if (entry.isDirectory()) {
        await using inner = await folder.inner(entry.name);
        if (!(await addEntries(inner, sum, depth - 1, left))) return false;
      } else {
        const { nlink, dev, ino, size } = await lstat(folder.pathOf(entry.name));
        sum.add(nlink, `${dev}:${ino}`, size);
      }
    } catch (error) {
      // The container works on its files meanwhile; what is no folder any more was exchanged.
      if (!['ENOENT', 'ENOTDIR', 'ELOOP'].some((code) => hasCode(error, code))) throw error;
    }
  }
  return true;
}

/** It goes from folder to folder by descriptors, too, and keeps few of them open. */
async function bytesByFind(path: string): Promise<number> {
  const words = [path, '-ignore_readdir_race', '!', '-type', 'd', '-printf', String.raw`%n %D:%i %s\n`];
  const find = spawn('find', words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(find, 'close') as Promise<[number | null]>;
  let complaint = '';
  find.stderr.on('data', (chunk: Buffer) => (complaint = `${complaint}${chunk.toString()}`.slice(0, 1000)));
  const sum = new Sum();
  for await (const line of createInterface(find.stdout)) {
    const [names, file = '', bytes] = line.split(' ');
    sum.add(Number(names), file, Number(bytes));
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`the size of ${path} is not known: ${complaint.trim()}`);
  return sum.bytes;
}
