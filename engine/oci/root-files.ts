import { closeSync, constants, fstatSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

import { holdInRoot, openRoot } from '../host/files/openat.ts';
import { EngineError, hasCode } from '../lib/errors.ts';

/** Where the root of a container is that this shim has mounted, as its processes see it but for their volumes. */
export function rootSeenBy(shimPid: number, { target }: Readonly<{ target: string }>): string {
  return `/proc/${shimPid}/root${target}`;
}

/** A container writes what it likes into its files: more than this is not read into the daemon's memory. */
const LIMIT_BYTES = 1024 * 1024;

/**
 * A text file of a container, by the path that its processes know; links lead where they lead inside of it. Empty where
 * there is no such file, or something that is none. Throws `failed` for one above 1 MiB.
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

/** Its text, or undefined when it has more bytes: its size may change at any moment, so it is not asked for. */
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
