import type { DiskUsageWire } from '@gantry/engine/system/disk-usage-schema.ts';

import { call, filters } from '../api/request.ts';
import { confirm } from '../parts/confirm.tsx';
import { notify } from '../parts/notices.tsx';
import { sizeText } from '../parts/texts.ts';

export type Volume = NonNullable<DiskUsageWire['Volumes']>[number];

/** The largest first. */
export async function loadVolumes(): Promise<readonly Volume[]> {
  const { Volumes = [] } = await call<DiskUsageWire>('GET', '/system/df', { query: { type: 'volume' } });
  return Volumes.toSorted((one, other) => other.UsageData.Size - one.UsageData.Size);
}

/** Removes volumes without containers, after a list of them. */
export async function pruneVolumes(): Promise<void> {
  const unused = (await loadVolumes()).filter(
    ({ UsageData, Driver }) => UsageData.RefCount === 0 && Driver === 'local',
  );
  if (unused.length === 0) return notify('All volumes have containers: there is nothing to remove.');
  const bytes = unused.reduce((sum, { UsageData }) => sum + Math.max(0, UsageData.Size), 0);
  const isSure = await confirm({
    title: 'Remove volumes without containers?',
    lines: unused.map(({ Name, UsageData }) => `${Name}: ${sizeText(Math.max(0, UsageData.Size))}`),
    note: `Their files are lost. This frees ${sizeText(bytes)}.`,
    word: 'Remove',
  });
  if (!isSure) return;
  const query = filters({ all: ['true'] });
  const { SpaceReclaimed } = await call<{ SpaceReclaimed: number }>('POST', '/volumes/prune', { query });
  notify(`Freed ${sizeText(SpaceReclaimed)}`);
}
