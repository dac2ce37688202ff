import type { Summary } from '@gantry/client/containers.ts';
import type { NetworkWire } from '@gantry/client/networks.ts';
import type { JSX } from 'preact';

import { hrefOf } from '../app/route.ts';
import { PortLinks } from '../containers/port-links.tsx';
import { countText } from '../parts/texts.ts';
import { layoutMap, type MapContainer, type MapNetwork } from './map-layout.ts';

/** More would be a drawing that nobody reads. */
const MAX_DRAWN = 200;

/** Networks and the running containers in them, joined by lines. The boxes have all facts as text; the lines repeat them. */
export function NetworkMap({
  networks,
  running,
}: {
  networks: readonly NetworkWire[];
  running: readonly Summary[];
}): JSX.Element | null {
  const map = layoutMap(networks, running.slice(0, MAX_DRAWN));
  if (map.containers.length === 0) return null;
  const left = running.length - MAX_DRAWN;
  return (
    <section aria-label="Map of networks" class="map">
      <div class="map-drawing" style={{ height: `${map.height}px` }}>
        <ul class="map-networks" aria-label="Networks">
          {map.networks.map((one) => (
            <NetworkBox key={one.network.Id} {...one} />
          ))}
        </ul>
        <svg aria-hidden="true" viewBox={`0 0 100 ${map.height}`} preserveAspectRatio="none">
          {map.lines.map(({ key, from, to }) => (
            <path key={key} d={`M 0 ${from} C 50 ${from}, 50 ${to}, 100 ${to}`} />
          ))}
        </svg>
        <ul class="map-containers" aria-label="Containers">
          {map.containers.map((one) => (
            <ContainerBox key={one.container.Id} {...one} />
          ))}
        </ul>
      </div>
      {left > 0 && <p class="soft">{left} more running containers are not drawn.</p>}
    </section>
  );
}

function NetworkBox({ network, members, top, height }: MapNetwork): JSX.Element {
  const subnets = network.IPAM.Config.map(({ Subnet }) => Subnet).join(', ');
  return (
    <li style={{ top: `${top}px`, height: `${height}px` }} title={`${network.Name} ${subnets}`}>
      <bdi class="map-name">{network.Name}</bdi>
      <span class="soft">{subnets === '' ? countText(members, 'container') : subnets}</span>
    </li>
  );
}

function ContainerBox({ container, name, networks, top, height }: MapContainer): JSX.Element {
  const hasPorts = container.Ports.some(({ PublicPort }) => PublicPort !== undefined);
  return (
    <li style={{ top: `${top}px`, height: `${height}px` }} title={name}>
      <a class="map-name" href={hrefOf('containers', container.Id)}>
        <bdi>{name}</bdi>
      </a>
      <span class="ports">{hasPorts ? <PortLinks ports={container.Ports} /> : <span class="soft">no ports</span>}</span>
      {networks.map(({ network, addresses }) => (
        <span key={network} class="map-address">
          <bdi class="soft">{network}</bdi> {addresses.join(' ')}
        </span>
      ))}
    </li>
  );
}
