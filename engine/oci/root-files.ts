import { closeSync, constants, fstatSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

import { holdInRoot, openRoot } from '../host/files/openat.ts';
import { EngineError, hasCode } from '../lib/errors.ts';

/** The root of a container as mounted by its shim, without the volumes. */
export function rootSeenBy(shimPid: number, { target }: Readonly<{ target: string }>): string {
  return `/proc/${shimPid}/root${target}`;
}

/** A container controls the size of its files, so this is the most that is read into the daemon's memory. */
const LIMIT_BYTES = 1024 * 1024;

/**
 * A text file of a container, by the path inside of it; links are resolved as inside of it. Empty if there is no such
 * plain file. Throws `failed` for one above 1 MiB.
 */
export async function readRootFile(root: string, path: string): Promise<string> {
  const held = hold(root, path);
  if (held === undefined) return '';
  try {
    if (!fstatSync(held).isFile()) return '';
    await using file = await open(`/proc/self/fd/${held}`, constants.O_RDONLY | constants.O_NONBLOCK);
    const text = await readUpTo(file, LIMIT_BYTES);
    if (text === undefined) throw new EngineError('failed', `the container's ${path} is larger than 1 MiB`);
    return text;
  } finally {
    closeSync(held);
  }
}

function hold(root: string, path: string): number | undefined {
  const top = openRoot(root);
  try {
    return holdInRoot(top, path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].some((code) => hasCode(error, code))) return undefined;
    throw error;
  } finally {
    closeSync(top);
  }
}

/** Its text, or undefined if it is too large: the size is not asked for, because it may change at any moment. */
async function readUpTo(file: FileHandle, limitBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024));
    if (bytesRead === 0) return Buffer.concat(chunks).toString();
    chunks.push(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
    if (bytes > limitBytes) return undefined;
  }
}
