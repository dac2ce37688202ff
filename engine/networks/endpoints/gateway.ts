import { withNetns } from '../../host/namespaces.ts';
import { getLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Networks } from '../networks.ts';
import type { Endpoint } from './endpoint.ts';
import { setDefaultRoute, type RouteTarget } from './interfaces.ts';

/**
 * The endpoint that leads a container out and publishes its ports: of the networks that lead out, that with the highest
 * priority, and the first by name, as in dockerd. One without IPv4 only if no other leads out.
 */
export function gatewayEndpoint(networks: Networks, endpoints: readonly Endpoint[]): Endpoint | undefined {
  return gatewayOfFour(networks, endpoints) ?? gatewayOfSix(networks, endpoints);
}

function gatewayOfFour(networks: Networks, endpoints: readonly Endpoint[]): Endpoint | undefined {
  return leadingOut(networks, endpoints).find(({ gateway, isWayOutItself }) => gateway !== '' || isWayOutItself);
}

/** The endpoint with the default route of IPv6: the first with IPv6, which may be another one. */
function gatewayOfSix(networks: Networks, endpoints: readonly Endpoint[]): Endpoint | undefined {
  return leadingOut(networks, endpoints).find(
    ({ ipv6, isWayOutItself }) => ipv6 !== undefined && (ipv6.gateway !== '' || isWayOutItself),
  );
}

function leadingOut(networks: Networks, endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints
    .filter(({ networkId }) => {
      const network = networks.store.network(networkId);
      return network !== undefined && networks.driverOf(network).leadsOut?.(network) === true;
    })
    .toSorted((a, b) => (b.gwPriority ?? 0) - (a.gwPriority ?? 0) || (a.networkName < b.networkName ? -1 : 1));
}

/** Sets the default routes of a container's namespace to those of the endpoints that lead out, or to none. */
export function settleRoutes(networks: Networks, netns: number, endpoints: readonly Endpoint[]): void {
  using inside = withNetns(netns, () => new Netlink());
  const routeOut = (endpoint: Endpoint | undefined, gateway: string | undefined): RouteTarget | undefined => {
    if (endpoint?.isWayOutItself === true) return { link: getLink(inside, endpoint.link).index };
    return gateway === undefined ? undefined : { gateway };
  };
  const [four, six] = [gatewayOfFour(networks, endpoints), gatewayOfSix(networks, endpoints)];
  setDefaultRoute(inside, 4, routeOut(four, four?.gateway));
  setDefaultRoute(inside, 6, routeOut(six, six?.ipv6?.gateway));
}
