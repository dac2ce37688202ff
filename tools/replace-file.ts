import { randomUUID } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file that readers find whole: the old one or the new one. Several programs may write it at once. */
export function replaceFile(path: string, contents: Uint8Array | string): void {
  const fresh = `${path}.${randomUUID()}.new`;
  writeFileSync(fresh, contents);
  renameSync(fresh, path);
}
