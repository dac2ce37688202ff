import type { EndpointSpec, Resources, ServiceSpec, TaskTemplate } from './records.ts';

type Restart = Required<NonNullable<TaskTemplate['restart']>>;

/** Without a word of the client: always again, after 5 s. */
export function restartOf({ restart }: TaskTemplate): Restart {
  return { condition: 'any', delayNs: 5e9, maxAttempts: 0, windowNs: 0, ...restart };
}

/** One at a time, and no further after a failure. */
export function updateOf({ update }: Pick<ServiceSpec, 'update'>): NonNullable<ServiceSpec['update']> {
  return update ?? { parallelism: 1, delayNs: 0, failureAction: 'pause' };
}

export function endpointOf({ endpoint }: { endpoint?: EndpointSpec }): EndpointSpec {
  return endpoint ?? { mode: 'vip', ports: [] };
}

/** Of the task on its node; 0: nothing. */
export function reservationsOf(template: TaskTemplate | undefined): Resources {
  return { nanoCpus: 0, memoryBytes: 0, ...template?.resources?.reservations };
}

export function constraintsOf(template: TaskTemplate | undefined): readonly string[] {
  return template?.constraints ?? [];
}
