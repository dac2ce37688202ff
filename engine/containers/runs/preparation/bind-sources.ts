import { existsSync, realpathSync } from 'node:fs';

import { mountOf } from '../../../host/mounts/mount-table.ts';
import { EngineError } from '../../../lib/errors.ts';
import { makeFolders } from '../../../lib/folders.ts';
import type { Container, MountPoint } from '../../store.ts';

/**
 * Creates the missing folders of binds, as docker does, except those of `Mounts`. Throws `failed` if the host's mount
 * does not support the bind's propagation.
 */
export function prepareBindSources({ mounts }: Pick<Container, 'mounts'>): void {
  for (const mount of mounts) {
    if (mount.type !== 'bind') continue;
    if (!existsSync(mount.source)) makeSource(mount);
    if (mount.isSlaveByDefault !== true) checkPropagation(mount);
  }
}

function makeSource({ source, mustExist = false }: MountPoint): void {
  if (mustExist) {
    throw new EngineError('failed', `invalid mount config for type "bind": bind source path does not exist: ${source}`);
  }
  makeFolders(source, 0o755);
}

function checkPropagation({ source, propagation }: MountPoint): void {
  const isShared = propagation.endsWith('shared');
  if (!isShared && !propagation.endsWith('slave')) return;
  const mount = mountOf(realpathSync(source));
  if (mount === undefined || mount.isShared || (mount.isSlave && !isShared)) return;
  const wanted = isShared ? 'a shared mount' : 'a shared or slave mount';
  throw new EngineError('failed', `path ${source} is mounted on ${mount.path} but it is not ${wanted}`);
}
