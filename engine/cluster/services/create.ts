import { EngineError } from '../../lib/errors.ts';
import { randomName } from '../../lib/random-name.ts';
import { refuseTakenPorts } from '../allocator/ports.ts';
import { newClusterId } from '../ca/token.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseWithoutIngress } from '../networks/ingress.ts';
import { checkReferences } from '../secrets/references.ts';
import { isJob } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import { templateOf } from '../state/template.ts';

/** POST /services/create. Returns the id. */
export function createService(
  draft: Draft,
  { spec, registryAuth }: WriteArguments<'createService'>,
  now: Temporal.Instant,
): string {
  const id = newClusterId();
  const isTaken = (name: string): boolean => draft.all('service').some((other) => other.spec.name === name);
  const name = spec.name || randomName(isTaken);
  if (isTaken(name)) {
    throw new EngineError(
      'conflict',
      `rpc error: code = AlreadyExists desc = name conflicts with an existing object: service ${name} already exists`,
    );
  }
  checkReferences(draft, spec.template);
  refuseWithoutIngress(draft, spec);
  refuseTakenPorts(draft, spec, undefined);
  const template = templateOf(id, spec);
  draft.put('template', template);
  draft.put('service', {
    id,
    createdAt: now.toString(),
    updatedAt: now.toString(),
    spec: { ...spec, name },
    template: template.hash,
    ...(isJob(spec) ? { job: { iteration: 0, startedAt: now.toString() } } : {}),
    endpoint: { ports: [], virtualIps: [] },
    ...(registryAuth === undefined ? {} : { registryAuth }),
  });
  return id;
}
