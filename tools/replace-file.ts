import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file that readers find whole: the old one or the new one. */
export function replaceFile(path: string, contents: Uint8Array | string): void {
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
}
