import { chmodSync, closeSync, fstatSync, mkdirSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
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

type CopyNeeds = Readonly<{ engine: Pick<Engine, 'copies'>; folder: string; signal: AbortSignal }>;

/** A copy of a folder or a file of a root, which goes when it is disposed. */
export async function copiedPlace({ engine, folder, signal }: CopyNeeds, from: string, inner: string): Promise<Place> {
  using undo = new DisposableStack();
  const root = join(folder, `copied-${shortId(newId())}`);
  undo.defer(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(root, { mode: 0o700 });
  await using view = await engine.copies.open({ root, mounts: [], readOnly: 'nothing' });
  const copied = { from, paths: [{ path: inner }], destination: '/files', extracts: false, isBuildkit: true };
  await view.transfer(copied, signal);
  const parts = undo.move();
  return { path: join(root, 'files'), [Symbol.dispose]: () => parts.dispose() };
}
