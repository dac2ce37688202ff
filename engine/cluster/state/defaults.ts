import type { ServiceRecord } from './records.ts';
import type { EndpointSpec, ServiceSpec, UpdateConfig } from './service-spec.ts';
import type { Resources, TaskTemplate } from './task-template.ts';

type Restart = Required<NonNullable<TaskTemplate['restart']>>;

/** Without a word of the client: always again, after 5 s. */
export function restartOf({ restart }: TaskTemplate): Restart {
  return { condition: 'any', delayNs: 5e9, maxAttempts: 0, windowNs: 0, ...restart };
}

type Updating = Readonly<{ spec: Pick<ServiceSpec, 'update' | 'rollback'> }> & Pick<ServiceRecord, 'updateStatus'>;

/** How the tasks of a service are replaced now. One at a time, and no further after a failure, without a word of the client. */
export function updateOf({ spec, updateStatus }: Updating): Required<UpdateConfig> {
  const config = updateStatus?.state.startsWith('rollback') === true ? spec.rollback : spec.update;
  return {
    ...{ parallelism: 1, delayNs: 0, failureAction: 'pause', monitorNs: 5e9, maxFailureRatio: 0, order: 'stop-first' },
    ...config,
  };
}

/** Whether tasks of a service are being replaced. */
export function isUpdating({ updateStatus }: Pick<ServiceRecord, 'updateStatus'>): boolean {
  return updateStatus?.state === 'updating' || updateStatus?.state === 'rollback_started';
}

/** The ports that each task publishes on its node, as `8080/tcp`; one that is chosen there is in nobody's way. */
export function hostPortsOf(of: { endpoint?: EndpointSpec }): string[] {
  const ports = endpointOf(of).ports.filter(({ mode, publishedPort }) => mode === 'host' && publishedPort !== 0);
  return ports.map(({ publishedPort, protocol }) => `${publishedPort}/${protocol}`);
}

/** Whether the tasks of the service run to their end once, instead of for ever. */
export function isJob({ mode }: Pick<ServiceSpec, 'mode'>): boolean {
  return mode.kind === 'replicated-job' || mode.kind === 'global-job';
}

export function endpointOf({ endpoint }: { endpoint?: EndpointSpec }): EndpointSpec {
  return endpoint ?? { mode: 'vip', ports: [] };
}

/** Reservations of the task on its node; 0: nothing. */
export function reservationsOf(template: TaskTemplate | undefined): Resources {
  return { nanoCpus: 0, memoryBytes: 0, ...template?.resources?.reservations };
}

export function constraintsOf(template: TaskTemplate | undefined): readonly string[] {
  return template?.constraints ?? [];
}
