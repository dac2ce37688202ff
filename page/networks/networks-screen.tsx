import type { Summary } from '@gantry/client/containers.ts';
import type { NetworkWire } from '@gantry/client/networks.ts';
import type { JSX } from 'preact';

import { call, isReadOnly } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { confirm } from '../parts/confirm.tsx';
import { List } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { countText } from '../parts/texts.ts';
import { NetworkMap } from './network-map.tsx';

const BUILT_IN: ReadonlySet<string> = new Set(['bridge', 'host', 'none']);
/** Events of containers that change the map; networks tell the others. */
const CHANGES: ReadonlySet<string> = new Set(['start', 'die', 'rename']);
/** Inspected one by one: a list of networks has no containers. */
const MAX_INSPECTED = 100;

type Loaded = Readonly<{ networks: readonly NetworkWire[]; running: readonly Summary[] }>;

/** All networks, with the containers in them. */
export function NetworksScreen(): JSX.Element {
  const readOnly = useStore(isReadOnly);
  const { value: loaded, problem } = useLoad(
    load,
    'networks',
    (type, _id, action) => type === 'network' || (type === 'container' && CHANGES.has(action)),
  );
  const networks = loaded?.networks;
  return (
    <section class="screen">
      <div class="bar">
        <h1>Networks</h1>
        <span class="soft">{networks === undefined ? '' : countText(networks.length, 'network')}</span>
      </div>
      {problem !== undefined && <p class="banner">{problem}</p>}
      <div class="scroller padded">
        {loaded !== undefined && <NetworkMap {...loaded} />}
        {networks?.map((network) => (
          <section key={network.Id} class="card" aria-label={network.Name}>
            <h2>
              <bdi>{network.Name}</bdi>{' '}
              <span class="soft">
                {network.Driver}
                {network.Internal ? ', internal' : ''} · {network.IPAM.Config.map(({ Subnet }) => Subnet).join(', ')}
              </span>
              {!readOnly && !BUILT_IN.has(network.Name) && Object.keys(network.Containers).length === 0 && (
                <button type="button" class="danger" onClick={() => void attempt(async () => await remove(network))}>
                  Remove
                </button>
              )}
            </h2>
            <List
              head={['Container', 'Address', 'IPv6', 'MAC']}
              rows={Object.entries(network.Containers).map(([id, one]) => [
                <a href={hrefOf('containers', id)}>{one.Name}</a>,
                one.IPv4Address,
                one.IPv6Address,
                one.MacAddress,
              ])}
              none="No containers"
            />
          </section>
        ))}
      </div>
    </section>
  );
}

async function load(): Promise<Loaded> {
  const [networks, running] = [await loadNetworks(), await call<Summary[]>('GET', '/containers/json')];
  return { networks, running };
}

async function loadNetworks(): Promise<readonly NetworkWire[]> {
  const list = await call<NetworkWire[]>('GET', '/networks');
  const named = list.toSorted((one, other) => one.Name.localeCompare(other.Name));
  const whole: NetworkWire[] = [];
  for (const [index, network] of named.entries()) {
    whole.push(index < MAX_INSPECTED ? await call<NetworkWire>('GET', `/networks/${network.Id}`) : network);
  }
  return whole;
}

async function remove({ Id, Name }: NetworkWire): Promise<void> {
  if (!(await confirm({ title: 'Remove this network?', lines: [Name], word: 'Remove' }))) return;
  await call('DELETE', `/networks/${Id}`);
  notify(`Removed ${Name}`);
}
