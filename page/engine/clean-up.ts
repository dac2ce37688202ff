import type { Summary } from '@gantry/client/containers.ts';
import type { DiskUsageWire } from '@gantry/engine/system/disk-usage-schema.ts';

import { call, filters } from '../api/request.ts';
import { nameOf } from '../containers/names.ts';
import { pruneImages } from '../images/prune.tsx';
import { confirm } from '../parts/confirm.tsx';
import { notify } from '../parts/notices.tsx';
import { countText, sizeText } from '../parts/texts.ts';
import { pruneVolumes } from '../storage/volumes.ts';

export type Kind = 'Images' | 'Containers' | 'Volumes' | 'Caches of builds';
type Reclaimed = Readonly<{ SpaceReclaimed: number }>;

/** Removes the unused objects of a kind, after a list of them. */
export async function cleanUp(kind: Kind): Promise<void> {
  switch (kind) {
    case 'Images':
      return await pruneImages();
    case 'Containers':
      return await pruneContainers();
    case 'Volumes':
      return await pruneVolumes();
    case 'Caches of builds':
      return await pruneCaches();
  }
}

async function pruneContainers(): Promise<void> {
  const query = { all: true, ...filters({ status: ['created', 'exited', 'dead'] }) };
  const stopped = await call<Summary[]>('GET', '/containers/json', { query });
  if (stopped.length === 0) return notify('All containers run: there is nothing to remove.');
  const isSure = await confirm({
    title: `Remove ${countText(stopped.length, 'stopped container')}?`,
    lines: stopped.map((one) => `${nameOf(one)}: ${one.Status}`),
    note: 'Their files and logs go too; volumes stay.',
    word: 'Remove',
  });
  if (!isSure) return;
  const { SpaceReclaimed } = await call<Reclaimed>('POST', '/containers/prune');
  notify(`Freed ${sizeText(SpaceReclaimed)}`);
}

async function pruneCaches(): Promise<void> {
  const { BuildCache = [] } = await call<DiskUsageWire>('GET', '/system/df', { query: { type: 'build-cache' } });
  const unused = BuildCache.filter(({ InUse }) => !InUse);
  if (unused.length === 0) return notify('All caches are in use: there is nothing to remove.');
  const isSure = await confirm({
    title: `Remove ${countText(unused.length, 'cached step')}?`,
    lines: [],
    note: 'The next builds run these steps again.',
    word: 'Remove',
  });
  if (!isSure) return;
  const { SpaceReclaimed } = await call<Reclaimed>('POST', '/build/prune', { query: { all: true } });
  notify(`Freed ${sizeText(SpaceReclaimed)}`);
}
