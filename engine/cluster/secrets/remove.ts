import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseArgument } from '../services/refuse-argument.ts';
import type { Draft } from '../state/draft.ts';
import { findSecret } from './find.ts';
import { referencesTo } from './references.ts';

/** DELETE /secrets/{id} and /configs/{id}. Refused while a service has a reference. */
export function removeSecret(draft: Draft, { kind, ref }: WriteArguments<'removeSecret'>): void {
  const { id, name } = findSecret(draft, kind, ref);
  const users = [...draft.all('service')].filter(({ spec }) => referencesTo(spec.template, kind).includes(id));
  const names = users.map(({ spec }) => spec.name);
  const noun = names.length === 1 ? 'service' : 'services';
  refuseArgument(names.length > 0, `${kind} '${name}' is in use by the following ${noun}: ${names.join(', ')}`);
  draft.delete(kind, id);
}
