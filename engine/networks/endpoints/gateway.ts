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
  return leadingOut(networks, endpoints).find(({ gateway }) => gateway !== '');
}

/** The same for IPv6: the first endpoint with IPv6, which may be another one. */
function gatewayOfSix(networks: Networks, endpoints: readonly Endpoint[]): Endpoint | undefined {
  return leadingOut(networks, endpoints).find(({ ipv6 }) => ipv6 !== undefined && ipv6.gateway !== '');
}

function leadingOut(networks: Networks, endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints
    .filter(({ networkId }) => {
      const network = networks.store.network(networkId);
      return network !== undefined && networks.driverOf(network).leadsOut?.(network) === true;
    })
    .toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1));
}

/** Sets the default routes of a container's namespace to those of the endpoints that lead out, or to none. */
export function settleRoutes(networks: Networks, netns: number, endpoints: readonly Endpoint[]): void {
  using inside = withNetns(netns, () => new Netlink());
  setDefaultRoute(inside, 4, gatewayEndpoint(networks, endpoints)?.gateway);
  setDefaultRoute(inside, 6, gatewayOfSix(networks, endpoints)?.ipv6?.gateway);
}
