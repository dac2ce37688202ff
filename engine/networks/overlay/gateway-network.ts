import { newId } from '../../lib/ids.ts';
import type { Networks } from '../networks.ts';
import type { NetworkRecord } from '../store.ts';

/** As in dockerd, where users make a network of this name to choose its addresses. */
const NAME = 'docker_gwbridge';

/**
 * Returns the bridge network through which containers of overlay networks reach other hosts; on it they do not see each
 * other. Creates it for the first such container.
 */
export function ensureGatewayNetwork(networks: Networks): NetworkRecord {
  const { settings, store } = networks;
  const known = store.networksNamed(NAME).find(({ driver }) => driver === 'bridge');
  if (known !== undefined) return known;
  const wanted: NetworkRecord = {
    id: newId(),
    name: NAME,
    driver: 'bridge',
    createdAt: settings.clock.now(),
    custom: {
      internal: false,
      attachable: false,
      enableIPv6: false,
      options: {
        'com.docker.network.bridge.enable_icc': 'false',
        'com.docker.network.bridge.enable_ip_masquerade': 'true',
      },
      labels: {},
      ipam: { driver: 'default', options: null, pools: [] },
    },
  };
  const made = networks.driverOf(wanted).create!(wanted) as NetworkRecord; // a bridge is made at once
  store.saveNetwork(made);
  return made;
}

/** Whether a network's containers need the gateway network to reach other hosts. */
export function needsGatewayNetwork({ overlay, custom }: NetworkRecord): boolean {
  return overlay !== undefined && custom?.internal !== true;
}
