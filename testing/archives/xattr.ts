import { bind, check, refusal } from '@gantry/engine/host/libc.ts';

const lsetxattr = bind<[string, string, Buffer, number, number], number>(
  'int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)',
);
const lgetxattr = bind<[string, string, Buffer | null, number], number>(
  'int64_t lgetxattr(const char *path, const char *name, void *value, size_t size)',
);

/** The kernel's limit for one value. */
const XATTR_MAX_BYTES = 65_536;

// Synchronous calls only, so that one buffer serves all of them.
const buffer = Buffer.alloc(XATTR_MAX_BYTES);

/** Sets an extended attribute of `path` itself, not of a symbolic link's target. */
export function setXattr(path: string, name: string, value: Buffer): void {
  check(lsetxattr(path, name, value, value.length, 0), 'lsetxattr', [path, name, value.length]);
}

/** The value of an extended attribute; `undefined` if the file has none of this name. */
export function getXattr(path: string, name: string): Buffer | undefined {
  const size = lgetxattr(path, name, buffer, buffer.length);
  if (size < 0) {
    const error = refusal('lgetxattr', [path, name]);
    if (error.code === 'ENODATA') return undefined;
    throw error;
  }
  return Buffer.from(buffer.subarray(0, size));
}
