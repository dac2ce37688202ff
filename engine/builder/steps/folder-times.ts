import { closeSync, utimesSync } from 'node:fs';

import { holdInRoot, openRoot } from '../../host/files/openat.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { GivenArgs } from '../build-args.ts';

const ARGUMENT = 'SOURCE_DATE_EPOCH';

/** Seconds since 1970 that a client wants as the time of all that a build makes. Throws `invalid`. */
export function epochIn(args: GivenArgs): number | undefined {
  const text = args[ARGUMENT] ?? '';
  if (text === '') return undefined;
  if (!/^\d{1,11}$/.test(text)) throw new EngineError('invalid', `invalid ${ARGUMENT}: ${text}`);
  return Number(text);
}

/** Makes folders by `make`, and gives this time to those of the path that were missing. */
export async function makeAtTime(
  root: string,
  path: string,
  epochSeconds: number | undefined,
  make: () => Promise<void>,
): Promise<void> {
  if (epochSeconds === undefined) return await make();
  using held = new DisposableStack();
  const top = held.adopt(openRoot(root), closeSync);
  const missing = foldersOf(path).filter((folder) => !exists(top, folder));
  await make();
  // The inner ones first: each of them changes the one above.
  for (const folder of missing.toReversed()) {
    const made = holdInRoot(top, folder);
    try {
      utimesSync(`/proc/self/fd/${made}`, epochSeconds, epochSeconds);
    } finally {
      closeSync(made);
    }
  }
}

/** The folder of a path and those above it, the outermost first, as bytes. */
function foldersOf(path: string): string[] {
  const names = Buffer.from(path).toString('latin1').split('/').filter(Boolean);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

function exists(root: number, path: string): boolean {
  try {
    closeSync(holdInRoot(root, path));
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
