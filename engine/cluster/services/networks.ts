import { EngineError } from '../../lib/errors.ts';
import type { ServiceSpec } from '../state/service-spec.ts';
import type { View } from '../state/view.ts';

/** The networks of the manager that is asked. */
export type LocalNetworks = { list: () => readonly Readonly<{ id: string; name: string }>[] };

/** The networks of a service by their ids. Those of the manager's host alone cannot be used: 403. */
export function resolveNetworks(
  view: View,
  networks: ServiceSpec['networks'],
  local: LocalNetworks,
): ServiceSpec['networks'] {
  return networks.map(({ target, ...more }) => {
    const network = view.get('network', target) ?? view.all('network').find(({ name }) => name === target);
    if (network !== undefined && !network.ingress) return { target: network.id, ...more };
    if (network !== undefined) {
      const reason = `Service cannot be explicitly attached to the ingress network "${network.name}"`;
      throw new EngineError('invalid', `rpc error: code = InvalidArgument desc = ${reason}`);
    }
    if (local.list().some(({ id, name }) => id === target || name === target)) {
      throw new EngineError(
        'forbidden',
        `The network ${target} cannot be used with services. Only networks scoped to the swarm can be used, such as those created with the overlay driver.`,
      );
    }
    throw new EngineError('failed', `network ${target} not found`);
  });
}
