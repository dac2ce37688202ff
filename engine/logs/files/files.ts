import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { hasCode } from '../../lib/errors.ts';
import { namesIn } from '../../lib/folders.ts';
import { LogFile } from './one-file.ts';
import { PACKED } from './packed.ts';

/** The number of attempts to open the files when they are rotated meanwhile. */
const ATTEMPTS = 20;

/** The files of one log, oldest first. */
export class LogFiles implements Disposable {
  readonly #files: LogFile[];

  constructor(path: string) {
    this.#files = openFiles(path).toReversed();
  }

  get last(): LogFile | undefined {
    return this.#files.at(-1);
  }

  from(index: number): readonly LogFile[] {
    return this.#files.slice(index);
  }

  /** Finds the file in which the last lines begin, and moves each file to its own start. */
  async seekTail(tail: number | 'all'): Promise<number> {
    if (tail === 'all') return 0;
    if (tail === 0) await this.last?.seekEnd();
    let missing = tail;
    let index = this.#files.length;
    while (missing > 0 && index > 0) {
      index -= 1;
      missing = (await this.#files[index]?.seekBack(missing)) ?? 0;
    }
    return Math.min(index, Math.max(this.#files.length - 1, 0));
  }

  isRotated(path: string): boolean {
    const inode = inodeOf(path);
    return inode !== undefined && inode !== this.last?.inode;
  }

  /** Adds the file that was begun after the last one. Several rotations may have happened: each file has its turn. */
  openNewer(path: string): boolean {
    const younger = openFiles(path, this.last);
    const newer = younger.pop();
    for (const file of younger) file[Symbol.dispose]();
    if (newer === undefined) return false;
    this.#files.push(newer);
    for (const old of this.#files.splice(0, this.#files.length - 1)) old[Symbol.dispose]();
    return true;
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.splice(0)) file[Symbol.dispose]();
  }
}

/** The files from the youngest on; up to `before`, which is left out. */
function openFiles(path: string, before?: LogFile): LogFile[] {
  for (let attempt = 1; ; attempt += 1) {
    const { opened, missing } = openOnce(path, before);
    // Otherwise a rotation has renamed one of them meanwhile.
    const isWhole = !missing && opened.every((file) => file.isStillThere);
    if (isWhole || attempt === ATTEMPTS) return opened;
    for (const file of opened) file[Symbol.dispose]();
  }
}

function openOnce(path: string, before: LogFile | undefined): { opened: LogFile[]; missing: boolean } {
  const opened: LogFile[] = [];
  for (const name of namesOf(path)) {
    const file = tryOpen(name);
    if (file === undefined) return { opened, missing: true };
    if (before !== undefined && file.isSame(before)) {
      file[Symbol.dispose]();
      break;
    }
    opened.push(file);
  }
  return { opened, missing: false };
}

/** Amid a rotation a number may be missing. A plain file is preferred to its compressed one. */
function namesOf(path: string): string[] {
  const base = basename(path);
  const byNumber = new Map<number, string>();
  for (const name of namesIn(dirname(path))) {
    if (!name.startsWith(base)) continue;
    const match = /^(?:\.(\d+)(\.gz)?)?$/.exec(name.slice(base.length));
    if (match === null) continue;
    const number = Number(match[1] ?? 0);
    if (!(name.endsWith(PACKED) && byNumber.has(number))) byNumber.set(number, name);
  }
  const sorted = [...byNumber].toSorted(([a], [b]) => a - b);
  return sorted.map(([, name]) => join(dirname(path), name));
}

function tryOpen(path: string): LogFile | undefined {
  try {
    return new LogFile(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}
