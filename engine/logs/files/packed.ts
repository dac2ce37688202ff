import { randomUUID } from 'node:crypto';
import { closeSync, createReadStream, openSync, readSync, unlinkSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';

const writeTo = promisify(write);

/** How the name of a compressed file ends. */
export const PACKED = '.gz';

/** The header of a gzip member with only a comment. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 0x10, 0, 0, 0, 0, 0, 3]);

/** The inode that the plain file had: the shim writes it as the comment of a first, empty member. */
export function inodeBefore(descriptor: number): number | undefined {
  const bytes = Buffer.alloc(HEAD.length + 32);
  readSync(descriptor, bytes, 0, bytes.length, 0);
  if (!bytes.subarray(0, HEAD.length).equals(HEAD)) return undefined;
  const [, inode] = /^inode (\d+)\0/.exec(bytes.toString('latin1', HEAD.length)) ?? [];
  return inode === undefined ? undefined : Number(inode);
}

/**
 * A descriptor of its content, as a file in `folder` without a name. For a damaged file, the content before the damage.
 */
export async function unpack(descriptor: number, folder: string): Promise<number> {
  const name = join(folder, `.${randomUUID()}`);
  const plain = openSync(name, 'wx+', 0o600);
  unlinkSync(name);
  try {
    const packed = createReadStream('', { fd: descriptor, autoClose: false, start: 0 });
    const unpack = packed.pipe(createGunzip());
    packed.on('error', (error) => unpack.destroy(error));
    for await (const piece of unpack as AsyncIterable<Buffer>) {
      for (let done = 0; done < piece.length;) done += (await writeTo(plain, piece, done)).bytesWritten;
    }
  } catch (error) {
    if (isDamage(error)) return plain;
    closeSync(plain);
    throw error;
  }
  return plain;
}

function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code === 'Z_BUF_ERROR' || code === 'Z_DATA_ERROR';
}
