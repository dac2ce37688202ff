import { closeSync, fstatSync } from 'node:fs';

import { EngineError } from '../../lib/errors.ts';
import { holdAt, openRoot } from './openat.ts';

/** A socket that is held open: its path leads there, whatever takes its name meanwhile. */
type HeldSocket = Disposable & Readonly<{ path: string }>;

/**
 * Holds a socket in a folder that others write. Throws `ENOENT` without one, and `failed` for anything else of that name,
 * such as a link to a socket elsewhere.
 */
export function holdSocket(folder: string, name: string): HeldSocket {
  const root = openRoot(folder);
  try {
    const fd = holdAt(root, Buffer.from(name).toString('latin1'));
    if (fstatSync(fd).isSocket()) return { path: `/proc/self/fd/${fd}`, [Symbol.dispose]: () => closeSync(fd) };
    closeSync(fd);
  } finally {
    closeSync(root);
  }
  throw new EngineError('failed', `its ${name} is not a socket`);
}
