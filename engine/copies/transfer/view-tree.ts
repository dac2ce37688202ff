import { closeSync, fstatSync, readSync, type Stats } from 'node:fs';

import { deviceMajor, deviceMinor } from '../../host/files/device-nodes.ts';
import { holdAt, namesIn, openHeld, targetOf, xattrOf } from '../../host/files/held-files.ts';
import { holdInRoot, readable, type BytePath } from '../../host/files/openat.ts';
import { entryTypeOf, type EntryType } from '../../layers/tar/tar-header.ts';
import { beginSum } from '../../layers/threads/context-sums.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { View } from '../view.ts';
import { groupName, userName } from './owner-names.ts';
import type { SourceTree } from './sources.ts';

const READ_BYTES = 1024 * 1024;
const CAPABILITY = 'security.capability';
/** The files of an image. Checksums are computed when they are asked for. */
export function viewTree(view: View): SourceTree {
  const { root } = view;
  return {
    missing: '',
    name: 'image',
    resolve(path) {
      const end = endIfThere(view, path);
      const held = end === undefined ? undefined : holdIfThere(root, end);
      if (end === undefined || held === undefined) return undefined;
      try {
        return { path: readable(end), isFolder: fstatSync(held).isDirectory() };
      } finally {
        closeSync(held);
      }
    },
    sumInSteps: (path) => sumAt(root, bytesOf(path)),
    entriesIn(folder) {
      const held = holdInRoot(root, bytesOf(folder));
      try {
        return namesIn(held).map((name) => ({ name: readable(name), isFolder: isFolderAt(held, name) }));
      } finally {
        closeSync(held);
      }
    },
  };
}

function bytesOf(path: string): BytePath {
  return Buffer.from(path).toString('latin1');
}

function isFolderAt(held: number, name: BytePath): boolean {
  const inner = holdAt(held, name);
  try {
    return fstatSync(inner).isDirectory();
  } finally {
    closeSync(inner);
  }
}

function endIfThere(view: View, path: string): BytePath | undefined {
  try {
    return view.endOf(bytesOf(path).split('/')).join('/');
  } catch (error) {
    if (error instanceof EngineError || hasCode(error, 'ENAMETOOLONG')) return undefined; // a circle of links
    throw error;
  }
}

function holdIfThere(root: number, path: BytePath): number | undefined {
  try {
    return holdInRoot(root, path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

function* sumAt(root: number, path: BytePath): Generator<void, string | undefined> {
  const slash = path.lastIndexOf('/');
  const parent = holdIfThere(root, slash < 0 ? '' : path.slice(0, slash));
  if (parent === undefined || path === '') return undefined;
  try {
    const held = holdAt(parent, path.slice(slash + 1));
    try {
      return yield* sumOfHeld(held, path);
    } finally {
      closeSync(held);
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  } finally {
    closeSync(parent);
  }
}

function* sumOfHeld(held: number, path: BytePath): Generator<void, string | undefined> {
  const stat = fstatSync(held);
  const type = entryTypeOf(stat.mode);
  if (type === undefined) return undefined;
  const hash = beginSum({
    name: type === 'directory' ? `${path}/` : path,
    type,
    fullMode: stat.mode,
    uid: stat.uid,
    gid: stat.gid,
    sizeBytes: type === 'file' ? stat.size : 0,
    linkPath: type === 'symlink' ? targetOf(held) : '',
    owners: { user: userName(stat.uid), group: groupName(stat.gid) },
    ...deviceOf(type, stat),
    xattrs: capabilityOf(held),
  });
  if (type !== 'file' || stat.size === 0) return hash.digest('hex');
  const fd = openHeld(held);
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    for (let read = readSync(fd, buffer); read > 0; read = readSync(fd, buffer)) {
      hash.update(buffer.subarray(0, read));
      yield; // a file with holes may be larger than the disk
    }
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex');
}

function deviceOf(type: EntryType, { rdev }: Stats): { major: number; minor: number } {
  if (type !== 'charDevice' && type !== 'blockDevice') return { major: 0, minor: 0 };
  return { major: deviceMajor(BigInt(rdev)), minor: deviceMinor(BigInt(rdev)) };
}

function capabilityOf(held: number): [string, Buffer][] {
  const value = xattrOf(held, CAPABILITY);
  return value === undefined ? [] : [[CAPABILITY, value]];
}
