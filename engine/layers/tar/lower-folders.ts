import { closeSync, fstatSync, type BigIntStats } from 'node:fs';

import { openDirectoryBeneath, openRoot, type BytePath } from '../../host/files/openat.ts';
import { hasCode } from '../../lib/errors.ts';

/**
 * The folder that the merged view of lower layers has at this path; `layers` are their folders, topmost first.
 *
 * Undefined when no layer has the path, or when the topmost one that has it has no folder there.
 */
export function folderBelow(layers: readonly string[], path: BytePath): BigIntStats | undefined {
  for (const layer of layers) {
    const found = folderIn(layer, path);
    if (found !== 'absent') return found === 'other' ? undefined : found;
  }
  return undefined;
}

/** `other`: the layer has something else at this path, or on the way to it. */
function folderIn(layer: string, path: BytePath): BigIntStats | 'absent' | 'other' {
  const root = openRoot(layer);
  try {
    const fd = openDirectoryBeneath(root, path);
    try {
      return fstatSync(fd, { bigint: true });
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'absent';
    if (hasCode(error, 'ENOTDIR') || hasCode(error, 'EXDEV') || hasCode(error, 'ELOOP')) return 'other';
    throw error;
  } finally {
    closeSync(root);
  }
}
