import { EngineError } from '../../lib/errors.ts';
import { refuseTakenPorts } from '../allocator/ports.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseWithoutIngress } from '../networks/ingress.ts';
import { sweepTemplates } from '../orchestrator/sweep.ts';
import { checkReferences } from '../secrets/references.ts';
import { refuseOldVersion, type Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import type { ServiceSpec } from '../state/service-spec.ts';
import { templateOf } from '../state/template.ts';
import { findService } from './find.ts';

/** POST /services/{id}/update. It takes the place of an update that is under way. */
export function updateService(draft: Draft, args: WriteArguments<'updateService'>, now: Temporal.Instant): void {
  const { ref, version, isRollback, registryAuth, ...asked } = args;
  const { updateStatus: _last, ...service } = findService(draft, ref);
  refuseOldVersion(service, version);
  const spec = isRollback ? previousOf(service) : asked.spec;
  if (spec.name !== service.spec.name) throw unimplemented('renaming services is not supported');
  if (spec.mode.kind !== service.spec.mode.kind) throw unimplemented('service mode change is not allowed');
  checkReferences(draft, spec.template);
  refuseWithoutIngress(draft, spec);
  refuseTakenPorts(draft, spec, service.id);
  const template = templateOf(service.id, spec);
  draft.put('template', template);
  const job = nextIteration(service, now);
  const updateStatus = {
    state: 'rollback_started',
    startedAt: now.toString(),
    message: 'manually requested rollback',
  } as const;
  draft.put('service', {
    ...service,
    spec,
    previousSpec: service.spec,
    ...(isRollback && job === undefined ? { updateStatus } : {}),
    ...(job === undefined ? {} : { job }),
    template: template.hash,
    updatedAt: now.toString(),
    ...(registryAuth === undefined ? {} : { registryAuth }),
  });
  sweepTemplates(draft, service.id, [service.template]);
}

/** A job runs again at each update. */
function nextIteration({ job }: Stored<'service'>, now: Temporal.Instant): Stored<'service'>['job'] {
  return job && { iteration: job.iteration + 1, startedAt: now.toString() };
}

function previousOf({ id, previousSpec }: Stored<'service'>): ServiceSpec {
  if (previousSpec !== undefined) return previousSpec;
  throw new EngineError(
    'invalid',
    `rpc error: code = FailedPrecondition desc = service ${id} does not have a previous spec`,
  );
}

function unimplemented(what: string): EngineError {
  return new EngineError('notImplemented', `rpc error: code = Unimplemented desc = ${what}`);
}
