import { EngineError } from '../../lib/errors.ts';
import type { NetworkDriver } from '../drivers/driver.ts';
import { OPTION_PREFIXES } from '../settings/options.ts';
import type { NetworkRecord } from '../store.ts';
import type { Bridges } from './bridges.ts';

type Hooks = Readonly<{
  /** Undefined before the daemon's start and after its end. */
  bridges: () => Bridges | undefined;
  create: (network: NetworkRecord) => NetworkRecord;
}>;

/** The driver `bridge`, over the bridges that exist from the daemon's start to its end. */
export function bridgeDriver({ bridges, create }: Hooks): NetworkDriver {
  const started = (): Bridges => {
    const all = bridges();
    if (all === undefined) throw new EngineError('notFound', 'network bridge not found');
    return all;
  };
  return {
    name: 'bridge',
    create,
    remove: ({ id }) => bridges()?.remove(id),
    prepare: async ({ id }) => await started().admit(id),
    join: ({ id }, wanted) => started().join(id, wanted),
    joinInto: ({ id }, wanted, within) => started().joinInto(id, wanted, within),
    leave: ({ id }, place, within) => bridges()?.leave(id, place, within),
    publish: ({ id }, place, wanted) => started().publish(id, place, wanted),
    unpublish: (_network, place, ports) => bridges()?.unpublish(place, ports),
    movePorts: (from, to, ports) => started().movePorts(from, to, ports),
    leadsOut: ({ custom }) => custom?.internal !== true,
    options: (network) => {
      if (network.custom !== undefined) return { ...network.custom.options };
      const all = bridges();
      return all?.has(network.id) === true ? usualOptions(network.bridge!, all.get(network.id).settings.mtu) : {};
    },
  };
}

/** Under the specification's names, and under those of dockerd. */
function usualOptions(bridge: string, mtu: number): Record<string, string> {
  const options = {
    'bridge.default_bridge': 'true',
    'bridge.enable_icc': 'true',
    'bridge.enable_ip_masquerade': 'true',
    'bridge.host_binding_ipv4': '0.0.0.0',
    'bridge.name': bridge,
    'driver.mtu': String(mtu),
  };
  return Object.fromEntries(
    OPTION_PREFIXES.flatMap((prefix) => Object.entries(options).map(([key, value]) => [`${prefix}.${key}`, value])),
  );
}
