import { INGRESS_SANDBOX } from '../overlay/services/ingress.ts';
import { gatewayEndpoint } from './gateway.ts';
import { tell, type NetworkNeeds } from './sandbox.ts';

/**
 * At the daemon's start: removes the endpoints of dead containers, then sets up the bridge with the rules and ports of
 * the living.
 *
 * Rules are written as a whole, which also replaces half-written rules of a killed daemon.
 */
export async function reconcile(engine: NetworkNeeds, liveContainerIds: Iterable<string>): Promise<void> {
  const live = new Set(liveContainerIds);
  if (engine.networks.overlays.hasIngress) live.add(INGRESS_SANDBOX);
  const { store } = engine.networks;
  for (const endpoint of store.endpoints()) {
    if (live.has(endpoint.containerId)) continue;
    const isGateway = gatewayEndpoint(engine.networks, store.endpointsOf(endpoint.containerId))?.id === endpoint.id;
    engine.networks.settings.db.transaction(() => {
      store.deleteEndpoint(endpoint);
      const network = store.network(endpoint.networkId);
      if (network === undefined) return;
      engine.networks.queueCleanup(network, endpoint, isGateway);
      tell(engine, 'disconnect', network, endpoint.containerId);
    });
  }
  await engine.networks.start();
}
