import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, realpathSync, rmdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { holdInRoot } from '../../host/files/openat.ts';
import { mountTable } from '../../host/mounts/mount-table.ts';
import { mountBind, setPropagation, unmount } from '../../host/mounts/mount.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { viewsFolder } from '../places.ts';

/**
 * Shows a folder of a plugin at a place that the plugin cannot change: it could put a link where a path of its own was
 * checked, before a container has it mounted. `root` is the plugin's tree, in which links are resolved. `key` names the
 * view; one that is there already is replaced. Throws `failed` where the plugin has no such folder.
 */
export function showView(
  config: Pick<Config, 'dataRoot'>,
  id: string,
  key: string,
  from: { root: string; path: string },
): string {
  const place = placeOf(config, id, key);
  hideView(config, id, key);
  const root = openSync(from.root, 'r');
  try {
    const held = heldIn(root, from.path);
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      mountBind(`/proc/self/fd/${held}`, place, { recursive: true });
      // An unmount in the view must not reach the plugin.
      setPropagation(place, 'slave', { recursive: true });
    } finally {
      closeSync(held);
    }
  } finally {
    closeSync(root);
  }
  return place;
}

function heldIn(root: number, path: string): number {
  try {
    return holdInRoot(root, path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR') && !hasCode(error, 'ELOOP')) throw error;
    throw new EngineError('failed', `the plugin has no folder ${path}`, { cause: error });
  }
}

/** One that is not there is not an error. */
export function hideView(config: Pick<Config, 'dataRoot'>, id: string, key: string): void {
  const place = placeOf(config, id, key);
  if (existsSync(place)) removeView(place);
}

/** Nobody uses the plugin any more. */
export function hideAllViews(config: Pick<Config, 'dataRoot'>, id: string): void {
  const folder = viewsFolder(config, id);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) removeView(join(folder, name));
}

function removeView(place: string): void {
  const real = join(realpathSync(dirname(place)), basename(place));
  // A daemon that was killed may have mounted one twice.
  for (const { path } of mountTable()) if (path === real) unmount(real, { lazy: true });
  rmdirSync(place);
}

function placeOf(config: Pick<Config, 'dataRoot'>, id: string, key: string): string {
  return join(viewsFolder(config, id), createHash('sha256').update(key).digest('hex').slice(0, 32));
}
