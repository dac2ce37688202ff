import type { ImageSummary } from '@gantry/client/images.ts';
import type { DiskUsageWire } from '@gantry/engine/system/disk-usage-schema.ts';
import type { JSX } from 'preact';

import { call, filters } from '../api/request.ts';
import { confirm } from '../parts/confirm.tsx';
import { attempt, notify } from '../parts/notices.tsx';
import { shortId, sizeText } from '../parts/texts.ts';
import { namesOf } from './names.ts';

/** Removes images without a container, after a list of them. */
export function PruneButton(): JSX.Element {
  return (
    <button type="button" onClick={() => void attempt(pruneImages)}>
      Clean up
    </button>
  );
}

/** Asks with a list first. */
export async function pruneImages(): Promise<void> {
  const { Images = [] } = await call<DiskUsageWire>('GET', '/system/df', { query: { type: 'image' } });
  const unused = Images.filter(({ Containers }) => Containers === 0);
  if (unused.length === 0) return notify('All images have containers: there is nothing to remove.');
  const own = unused.reduce((sum, one) => sum + ownSize(one), 0);
  const isSure = await confirm({
    title: 'Remove images without containers?',
    lines: unused.map(
      (one) => `${namesOf(one)[0] === 'no name' ? shortId(one.Id) : namesOf(one)[0]}: ${sizeText(one.Size)}`,
    ),
    note: `This frees at least ${sizeText(own)}; layers that only they share come on top.`,
    word: 'Remove',
  });
  if (!isSure) return;
  const query = filters({ dangling: ['false'] });
  const { SpaceReclaimed } = await call<{ SpaceReclaimed: number }>('POST', '/images/prune', { query });
  notify(`Freed ${sizeText(SpaceReclaimed)}`);
}

function ownSize({ Size, SharedSize }: ImageSummary): number {
  return Math.max(0, Size - Math.max(0, SharedSize));
}
