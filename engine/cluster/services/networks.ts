import { EngineError, refuseIf } from '../../lib/errors.ts';
import type { ServiceSpec } from '../state/service-spec.ts';
import { NODE_NETWORKS, type NodeNetwork } from '../state/task-template.ts';
import type { View } from '../state/view.ts';

/** The networks of the manager that is asked. */
export type LocalNetworks = { list: () => readonly Readonly<{ id: string; name: string }>[] };

type Resolved = Readonly<{ networks: ServiceSpec['networks']; nodeNetwork: NodeNetwork | undefined }>;

/**
 * The networks of a service by their ids, or the network of each node that its tasks are in. Other networks of the manager's
 * host cannot be used: 403.
 */
export function resolveNetworks(view: View, { networks, endpoint }: ServiceSpec, local: LocalNetworks): Resolved {
  const nodeNetwork = networks.map(({ target }) => nodeNetworkOf(target, local)).find((name) => name !== undefined);
  if (nodeNetwork === undefined) {
    return { networks: networks.map((one) => ({ ...one, target: idOf(view, one.target, local) })), nodeNetwork };
  }
  const network = `the network "${nodeNetwork}" of the nodes`;
  refuseIf(networks.length > 1, `${network} cannot be used beside other networks`);
  const publishes = endpoint?.ports.some(({ mode }) => mode !== 'host') ?? false;
  refuseIf(
    nodeNetwork === 'host' && publishes,
    `${network} cannot be used with ports published by the ingress network`,
  );
  return { networks: [], nodeNetwork };
}

function nodeNetworkOf(target: string, local: LocalNetworks): NodeNetwork | undefined {
  const name = local.list().find(({ id }) => id === target)?.name ?? target;
  return NODE_NETWORKS.find((one) => one === name);
}

function idOf(view: View, target: string, local: LocalNetworks): string {
  const network = view.get('network', target) ?? view.all('network').find(({ name }) => name === target);
  if (network !== undefined && !network.ingress) return network.id;
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
}
