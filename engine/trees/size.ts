import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat } from 'node:fs/promises';
import { createInterface } from 'node:readline';

import { hasCode } from '../lib/errors.ts';
import { OpenFolder } from './open-folder.ts';

/** Limits of what is measured in the process; a child measures larger or deeper trees. */
const SMALL_TREE = { entries: 256, depth: 16 };

/** The size of all files below a folder, however deep. A file with several names counts once, folders do not count. */
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

/** Returns whether the tree was small enough. */
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
      // The container works on its files meanwhile: the folder was removed or replaced.
      if (!['ENOENT', 'ENOTDIR', 'ELOOP'].some((code) => hasCode(error, code))) throw error;
    }
  }
  return true;
}

/** `find` also walks by descriptors, and keeps few of them open. */
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
  if (code !== 0) throw new Error(`cannot measure ${path}: ${complaint.trim()}`);
  return sum.bytes;
}
