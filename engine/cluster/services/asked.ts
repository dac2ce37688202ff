import { refuseIf } from '../../lib/errors.ts';
import type { View } from '../state/view.ts';
import type { ServiceCreation } from './create.ts';
import { refuseLaterFields } from './later-fields.ts';
import { resolveNetworks, type LocalNetworks } from './networks.ts';
import type { ServiceBody } from './schema.ts';
import { readServiceSpec } from './spec.ts';

/** A record has two specifications at most, and etcd takes 1.5 MB at a time. */
const MAX_SPEC = 512 * 1024;

/** A client's service, checked, as the leader gets it. `auth`: the header X-Registry-Auth. */
export function askedService(
  view: View,
  local: LocalNetworks,
  body: ServiceBody,
  auth: string | readonly string[] | undefined,
): ServiceCreation {
  refuseIf(JSON.stringify(body).length > MAX_SPEC, 'the specification of a service is 512 KB at most');
  refuseLaterFields(body);
  const spec = readServiceSpec(body);
  const [registryAuth = ''] = [auth ?? ''].flat();
  return {
    spec: { ...spec, networks: resolveNetworks(view, spec.networks, local) },
    ...(registryAuth === '' ? {} : { registryAuth }),
  };
}
