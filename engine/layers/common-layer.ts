import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

import { makeFolders } from '../lib/folders.ts';

/** The lowest layer of a root without an image; earlier versions had it in every container, which may still run. */
export const COMMON = 'common';
/** The name in still earlier versions. */
export const OLD_COMMON = 'empty';

/** Its only file is empty, and tells programs that they run in a container. */
export function makeCommonLayer(layers: string): void {
  const folder = join(layers, COMMON);
  makeFolders(folder, 0o755);
  const mark = join(folder, '.dockerenv');
  closeSync(openSync(mark, 'w'));
  chmodSync(mark, 0o755);
}
