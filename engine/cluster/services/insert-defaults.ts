import { restartOf, updateOf } from '../state/defaults.ts';
import type { Stored } from '../state/records.ts';
import type { ServiceSpec, UpdateConfig } from '../state/service-spec.ts';

const GRACE_NS = 10e9;
const UPDATE: UpdateConfig = { ...updateOf({ spec: {} }) };

/** Fills in the fields that the client left out, for the query parameter `insertDefaults`, as dockerd does: the specification before stays as it is. */
export function insertDefaults(service: Stored<'service'>): Stored<'service'> {
  return { ...service, spec: fillSpec(service.spec) };
}

function fillSpec(spec: ServiceSpec): ServiceSpec {
  const { template, update = UPDATE, rollback = UPDATE } = spec;
  const { windowNs, ...restart } = restartOf(template);
  return {
    ...spec,
    template: {
      ...template,
      container: { stopGracePeriodNs: GRACE_NS, dns: {}, ...template.container },
      resources: template.resources ?? {},
      restart: windowNs === 0 ? restart : { ...restart, windowNs },
      constraints: template.constraints ?? [],
    },
    update: { monitorNs: UPDATE.monitorNs!, ...update },
    rollback: { monitorNs: UPDATE.monitorNs!, ...rollback },
  };
}
