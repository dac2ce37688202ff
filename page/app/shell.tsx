import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { connection } from '../api/engine-events.ts';
import { isReadOnly } from '../api/request.ts';
import { ClusterScreen } from '../cluster/cluster-screen.tsx';
import { ContainerScreen } from '../container/container-screen.tsx';
import { ContainersScreen } from '../containers/containers-screen.tsx';
import { EventsScreen } from '../engine/events-screen.tsx';
import { SystemScreen } from '../engine/system-screen.tsx';
import { ImageScreen } from '../images/image-screen.tsx';
import { ImagesScreen } from '../images/images-screen.tsx';
import { NetworksScreen } from '../networks/networks-screen.tsx';
import { ConfirmDialog } from '../parts/confirm.tsx';
import { notify, Notices } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { VolumeScreen } from '../storage/volume-screen.tsx';
import { VolumesScreen } from '../storage/volumes-screen.tsx';
import { hrefOf, route } from './route.ts';
import { PLACES } from './shortcuts.ts';

const TITLES: ReadonlyMap<string, string> = new Map([
  ['containers', 'Containers'],
  ['images', 'Images'],
  ['volumes', 'Volumes'],
  ['networks', 'Networks'],
  ['events', 'Events'],
  ['system', 'System'],
  ['cluster', 'Cluster'],
]);

/** The frame of all screens. */
export function Shell(): JSX.Element {
  const [place = 'containers', id, part] = useStore(route);
  const readOnly = useStore(isReadOnly);
  return (
    <>
      <header>
        <a class="brand" href={hrefOf('containers')}>
          Gantry
        </a>
        <nav aria-label="Screens">
          {[...PLACES].map(([key, name]) => (
            <a key={name} href={hrefOf(name)} aria-current={name === place ? 'page' : undefined} title={`g ${key}`}>
              {TITLES.get(name)}
            </a>
          ))}
        </nav>
        {readOnly && <span class="mark">read-only</span>}
      </header>
      <ConnectionBanner />
      <main>
        <Screen place={place} id={id} part={part} />
      </main>
      <Notices />
      <ConfirmDialog />
    </>
  );
}

function Screen({ place, id, part }: { place: string; id: string | undefined; part: string | undefined }): JSX.Element {
  if (place === 'containers' && id !== undefined) return <ContainerScreen key={id} id={id} part={part ?? 'summary'} />;
  if (place === 'images' && id !== undefined) return <ImageScreen key={id} id={id} />;
  if (place === 'volumes' && id !== undefined) return <VolumeScreen key={id} name={id} />;
  switch (place) {
    case 'containers':
      return <ContainersScreen />;
    case 'images':
      return <ImagesScreen />;
    case 'volumes':
      return <VolumesScreen />;
    case 'networks':
      return <NetworksScreen />;
    case 'events':
      return <EventsScreen />;
    case 'system':
      return <SystemScreen />;
    case 'cluster':
      return <ClusterScreen />;
    default:
      return <h1>There is no such screen</h1>;
  }
}

function ConnectionBanner(): JSX.Element | null {
  const state = useStore(connection);
  const before = useRef(state);
  useEffect(() => {
    if (before.current === 'lost' && state === 'live') notify('The daemon answers again.');
    before.current = state;
  }, [state]);
  if (state === 'lost') {
    return (
      <p class="banner" role="alert">
        The daemon does not answer. Containers go on; this page connects again by itself.
      </p>
    );
  }
  if (state !== 'over') return null;
  return (
    <p class="banner" role="alert">
      This page has ended. Run <code>gantry page</code> for a new address.
    </p>
  );
}
