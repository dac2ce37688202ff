import { EngineError } from '../../lib/errors.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import type { Draft } from '../state/draft.ts';
import { removeIngress } from './ingress.ts';

/** DELETE /networks/{id} of a cluster's network. Throws `notFound`, and `invalid` while a service or a container uses it, as dockerd. */
export function removeNetwork(draft: Draft, { id }: WriteArguments<'removeNetwork'>): void {
  const network = draft.get('network', id);
  if (network === undefined) throw new EngineError('notFound', `network ${id} not found`);
  if (network.ingress) return removeIngress(draft, network);
  const user = draft.all('service').find(({ spec }) => spec.networks.some(({ target }) => target === network.id));
  if (user !== undefined) {
    const reason = `network ${network.id} is in use by service ${user.id}`;
    throw new EngineError('invalid', `rpc error: code = FailedPrecondition desc = ${reason}`);
  }
  const container = draft.all('attachment').find((one) => one.network === network.id);
  if (container !== undefined) {
    const reason = `network ${network.id} is in use by task ${container.id}`;
    throw new EngineError('invalid', `rpc error: code = FailedPrecondition desc = ${reason}`);
  }
  draft.delete('network', network.id);
}
