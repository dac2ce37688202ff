import { EngineError } from '../../lib/errors.ts';
import type { ServiceSpec } from '../state/records.ts';
import type { View } from '../state/view.ts';

/**
 * The networks of a service by their ids. `isLocal`: whether this host has a network of that name; services cannot use
 * these: 403.
 */
export function resolveNetworks(
  view: View,
  networks: ServiceSpec['networks'],
  isLocal: (ref: string) => boolean,
): ServiceSpec['networks'] {
  return networks.map(({ target, aliases }) => {
    const network = view.get('network', target) ?? view.all('network').find(({ name }) => name === target);
    if (network !== undefined && !network.ingress) return { target: network.id, aliases };
    if (network !== undefined || isLocal(target)) {
      throw new EngineError(
        'forbidden',
        `The network ${target} cannot be used with services. Only networks scoped to the swarm can be used, such as those created with the overlay driver.`,
      );
    }
    throw new EngineError('failed', `network ${target} not found`);
  });
}
