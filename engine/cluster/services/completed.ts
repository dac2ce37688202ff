import { restartOf, updateOf } from '../state/defaults.ts';
import type { ServiceSpec, Stored, UpdateConfig } from '../state/records.ts';

const GRACE_NS = 10e9;
const UPDATE: UpdateConfig = { ...updateOf({ spec: {} }) };

/** A service with what its fields mean where the client left them out: for the query parameter `insertDefaults`, as with dockerd. */
export function completedService(service: Stored<'service'>): Stored<'service'> {
  const { spec, previousSpec } = service;
  return {
    ...service,
    spec: completed(spec),
    ...(previousSpec === undefined ? {} : { previousSpec: completed(previousSpec) }),
  };
}

function completed(spec: ServiceSpec): ServiceSpec {
  const { template, update = UPDATE, rollback = UPDATE } = spec;
  const { windowNs, ...restart } = restartOf(template);
  return {
    ...spec,
    template: {
      ...template,
      container: { stopGracePeriodNs: GRACE_NS, ...template.container },
      resources: template.resources ?? {},
      restart: windowNs === 0 ? restart : { ...restart, windowNs },
      constraints: template.constraints ?? [],
    },
    update: { monitorNs: UPDATE.monitorNs!, ...update },
    rollback: { monitorNs: UPDATE.monitorNs!, ...rollback },
  };
}
