import type { CreateBody } from '../../containers/schema.ts';
import type { AgentNeeds } from './needs.ts';
import type { AgentTask } from './store.ts';

/** What the networks of a task add to the body of its container's creation. */
export type TaskNetworks = Readonly<{
  hostConfig: NonNullable<CreateBody['HostConfig']>;
  networkingConfig: NonNullable<CreateBody['NetworkingConfig']>;
}>;

/**
 * Makes the networks of a task ready on this node, before its container is created; what it throws rejects the task.
 * Without networks of its own a task is in the default one.
 */
export async function joinTaskNetworks(_engine: AgentNeeds, _task: AgentTask): Promise<TaskNetworks> {
  return await Promise.resolve({ hostConfig: { NetworkMode: 'default' }, networkingConfig: {} });
}

/** A task leaves its services before its container is stopped, so that no new connection reaches it. */
export async function leaveTaskNetworks(_engine: AgentNeeds, _task: AgentTask): Promise<void> {
  await Promise.resolve();
}
