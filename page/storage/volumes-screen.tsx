import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { call, isReadOnly } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { confirm } from '../parts/confirm.tsx';
import { useLoad } from '../parts/load.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { countText, sizeText, timeText } from '../parts/texts.ts';
import { loadVolumes, pruneVolumes, type Volume } from './volumes.ts';

/** All volumes with their sizes and users. */
export function VolumesScreen(): JSX.Element {
  const [search, setSearch] = useState('');
  const readOnly = useStore(isReadOnly);
  const { value: volumes, problem } = useLoad(
    loadVolumes,
    'volumes',
    (type, _id, action) => type === 'volume' || (type === 'container' && (action === 'create' || action === 'destroy')),
  );
  const shown = (volumes ?? []).filter(({ Name }) => Name.toLowerCase().includes(search.toLowerCase()));
  return (
    <section class="screen">
      <div class="bar">
        <h1>Volumes</h1>
        <span class="soft">{volumes === undefined ? '' : countText(volumes.length, 'volume')}</span>
        <input
          type="search"
          placeholder="Search  /"
          aria-label="Search volumes"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {!readOnly && (
          <button type="button" onClick={() => void attempt(async () => await pruneVolumes())}>
            Clean up
          </button>
        )}
      </div>
      {problem !== undefined && <p class="banner">{problem}</p>}
      <div class="scroller">
        <table class="rows">
          <thead>
            <tr>
              <th>Name</th>
              <th class="middle">Driver</th>
              <th class="number">Size</th>
              <th class="number">Used by</th>
              <th class="wide">Created</th>
              <th class="check">
                <span class="hidden">Remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((volume) => (
              <tr key={volume.Name}>
                <td class="name" title={volume.Mountpoint}>
                  <a class="row-link" href={hrefOf('volumes', volume.Name)}>
                    <bdi>{volume.Name}</bdi>
                  </a>
                </td>
                <td class="middle">{volume.Driver}</td>
                <td class="number">{volume.UsageData.Size < 0 ? '' : sizeText(volume.UsageData.Size)}</td>
                <td class="number">{volume.UsageData.RefCount < 0 ? '' : volume.UsageData.RefCount}</td>
                <td class="wide">{timeText(volume.CreatedAt)}</td>
                <td class="check">
                  {!readOnly && (
                    <button
                      type="button"
                      aria-label={`Remove ${volume.Name}`}
                      disabled={volume.UsageData.RefCount > 0}
                      onClick={() => void attempt(async () => await removeVolume(volume))}
                    >
                      ×
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {volumes !== undefined && shown.length === 0 && <p class="empty">No volumes.</p>}
      </div>
    </section>
  );
}

async function removeVolume({ Name }: Volume): Promise<void> {
  const question = { title: 'Remove this volume?', lines: [Name], note: 'Its files are lost.', word: 'Remove' };
  if (!(await confirm(question))) return;
  await call('DELETE', `/volumes/${encodeURIComponent(Name)}`);
  notify(`Removed ${Name}`);
}
