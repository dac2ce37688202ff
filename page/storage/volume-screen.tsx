import type { VolumeWire } from '@gantry/client/volumes.ts';
import type { JSX } from 'preact';

import { call } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { containers } from '../containers/containers.ts';
import { nameOf } from '../containers/names.ts';
import { FilesScreen } from '../files/files-screen.tsx';
import { useLoad } from '../parts/load.ts';
import { useStore } from '../parts/store.ts';

/** One volume: its users, and its files to read. */
export function VolumeScreen({ name }: { name: string }): JSX.Element {
  const path = `/volumes/${encodeURIComponent(name)}` as const;
  const { value: volume, problem } = useLoad(
    async () => await call<VolumeWire>('GET', path),
    name,
    (type, id) => type === 'volume' && id === name,
  );
  if (volume === undefined || problem !== undefined) return <p class="empty">{problem ?? 'Loading…'}</p>;
  return (
    <section class="screen">
      <div class="bar">
        <h1 class="title">
          <a href={hrefOf('volumes')} aria-label="All volumes">
            ‹
          </a>{' '}
          <bdi>{volume.Name}</bdi>
        </h1>
        <span class="soft">{volume.Driver}</span>
        <Users volume={volume.Name} />
      </div>
      <FilesScreen owner={path} takesUploads={false} />
    </section>
  );
}

function Users({ volume }: { volume: string }): JSX.Element {
  const all = [...(useStore(containers)?.values() ?? [])];
  const users = all.filter(({ Mounts }) => Mounts.some(({ Type, Name }) => Type === 'volume' && Name === volume));
  if (users.length === 0) return <span class="soft">no container has it</span>;
  return (
    <span class="choices">
      {users.map((user) => (
        <a key={user.Id} href={hrefOf('containers', user.Id)}>
          <bdi>{nameOf(user)}</bdi>
        </a>
      ))}
    </span>
  );
}
