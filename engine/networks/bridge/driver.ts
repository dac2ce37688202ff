import type { NetworkDriver } from '../driver.ts';
import type { BridgeNetwork } from './bridge-network.ts';

/** `bridge` exists from the daemon's start to its end. */
export function bridgeDriver(bridge: () => BridgeNetwork, started: () => BridgeNetwork | undefined): NetworkDriver {
  return {
    name: 'bridge',
    prepare: async () => await bridge().admit(),
    join: (_network, wanted) => bridge().join(wanted),
    leave: (_network, { ipAddress }) => started()?.leave(ipAddress),
    publish: (_network, { ipAddress }, wanted) => bridge().publish(ipAddress, wanted),
    unpublish: (_network, { ipAddress }, ports) => started()?.unpublish(ipAddress, ports),
    options: ({ bridge: name }) => {
      const on = started();
      return name === undefined || on === undefined ? {} : optionsOf(name, on.settings.mtu);
    },
  };
}

/** Under the specification's names, and under those of dockerd. */
function optionsOf(bridge: string, mtu: number): Record<string, string> {
  const options = {
    'bridge.default_bridge': 'true',
    'bridge.enable_icc': 'true',
    'bridge.enable_ip_masquerade': 'true',
    'bridge.host_binding_ipv4': '0.0.0.0',
    'bridge.name': bridge,
    'driver.mtu': String(mtu),
  };
  return Object.fromEntries(
    ['com.docker.network', 'com.engine.network'].flatMap((prefix) =>
      Object.entries(options).map(([key, value]) => [`${prefix}.${key}`, value]),
    ),
  );
}
