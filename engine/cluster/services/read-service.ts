import { refuseIf } from '../../lib/errors.ts';
import { isWithin, MAX_RECORD_BYTES } from '../../lib/notations/field-schemas.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import type { View } from '../state/view.ts';
import { resolveNetworks, type LocalNetworks } from './networks.ts';
import type { ServiceBody } from './schema.ts';
import { readServiceSpec } from './spec.ts';

/** Checks a client's service and returns it in the leader's form. `auth`: the header X-Registry-Auth. */
export function readService(
  view: View,
  local: LocalNetworks,
  body: ServiceBody,
  auth: string | readonly string[] | undefined,
): WriteArguments<'createService'> {
  refuseIf(!isWithin(MAX_RECORD_BYTES, body), 'the specification of a service is 512 KB at most');
  const spec = readServiceSpec(body);
  const [registryAuth = ''] = [auth ?? ''].flat();
  const { networks, nodeNetwork } = resolveNetworks(view, spec, local);
  const container = { ...spec.template.container, ...(nodeNetwork !== undefined && { nodeNetwork }) };
  return {
    spec: { ...spec, networks, template: { ...spec.template, container } },
    ...(registryAuth === '' ? {} : { registryAuth }),
  };
}
