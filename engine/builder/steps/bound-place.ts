import { chmodSync, closeSync, fstatSync, mkdirSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { holdInRoot, openRoot } from '../../host/files/openat.ts';
import { mountBind, mountOverlay, unmount } from '../../host/mounts/mount.ts';
import { newId, shortId } from '../../lib/ids.ts';

type Place = Disposable & { path: string };

/**
 * Files of a root, bound to a place of their own in the folder of a build: shims drop the daemon's mounts of roots. Links are
 * followed below the root.
 */
export function boundPlace(folder: string, root: string, inner: string): Place {
  using held = new DisposableStack();
  using undo = new DisposableStack();
  const top = held.adopt(openRoot(root), closeSync);
  const source = held.adopt(holdInRoot(top, Buffer.from(inner).toString('latin1')), closeSync);
  const path = join(folder, `bound-${shortId(newId())}`);
  const isFolder = fstatSync(source).isDirectory();
  if (isFolder) mkdirSync(path, { mode: 0o700 });
  else writeFileSync(path, '', { flag: 'wx' });
  // Which also ends copies of the mount that shims have got meanwhile.
  undo.defer(() => (isFolder ? rmdirSync(path) : unlinkSync(path)));
  mountBind(`/proc/self/fd/${source}`, path);
  undo.defer(() => unmount(path, { lazy: true }));
  const parts = undo.move();
  return { path, [Symbol.dispose]: () => parts.dispose() };
}

/** A root whose changes are gone when it is disposed. */
export function throwAway(folder: string, root: string): Place {
  using undo = new DisposableStack();
  const place = join(folder, `changes-${shortId(newId())}`);
  undo.defer(() => rmSync(place, { recursive: true, force: true }));
  const [upper, work, target] = ['upper', 'work', 'merged'].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [upper, work, target]) mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(upper, 0o755);
  mountOverlay({ lower: [root], upper, work, target });
  undo.defer(() => unmount(target, { lazy: true }));
  const parts = undo.move();
  return { path: target, [Symbol.dispose]: () => parts.dispose() };
}
