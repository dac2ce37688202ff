import { withNetns } from '../../host/namespaces.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Networks } from '../networks.ts';
import type { Endpoint } from './endpoint.ts';
import { setDefaultRoute } from './interfaces.ts';

/**
 * The endpoint that leads a container out and publishes its ports: of the networks that lead out, the first by name, as
 * in dockerd.
 */
export function gatewayEndpoint(networks: Networks, endpoints: readonly Endpoint[]): Endpoint | undefined {
  const [first] = endpoints
    .filter(({ networkId, gateway }) => {
      const network = networks.store.network(networkId);
      return gateway !== '' && network !== undefined && networks.driverOf(network).leadsOut?.(network) === true;
    })
    .toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1));
  return first;
}

/** Sets the default route of a container's namespace to that of the endpoint, or to none. */
export function leadOutBy(netns: number, endpoint: Endpoint | undefined): void {
  using inside = withNetns(netns, () => new Netlink());
  setDefaultRoute(inside, endpoint?.gateway);
}
