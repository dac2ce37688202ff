import type { CreateBody } from '../../containers/schema.ts';
import type { AgentNeeds } from './needs.ts';
import type { AgentTask } from './store.ts';

/** Networks of a task, as fields of the body of its container's creation. */
export type TaskNetworks = Readonly<{
  hostConfig: NonNullable<CreateBody['HostConfig']>;
  networkingConfig: NonNullable<CreateBody['NetworkingConfig']>;
}>;

/**
 * Waits until this node knows the networks of a task, before its container is created; what it throws rejects the task.
 * Without networks of its own a task is in the default one.
 */
export async function joinTaskNetworks(
  { networks }: AgentNeeds,
  { addresses, made }: AgentTask,
): Promise<TaskNetworks> {
  if (made?.container.nodeNetwork === 'host') {
    return { hostConfig: { NetworkMode: 'host' }, networkingConfig: { EndpointsConfig: {} } };
  }
  const { networkMode, endpoints } = await networks.overlays.containerNetworks(addresses);
  return { hostConfig: { NetworkMode: networkMode }, networkingConfig: { EndpointsConfig: endpoints } };
}

/** A task leaves its services before its container is stopped, so that no new connection reaches it. */
export async function leaveTaskNetworks({ networks }: AgentNeeds, { id }: AgentTask): Promise<void> {
  await networks.overlays.withdraw(id);
}
