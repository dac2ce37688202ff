import { EngineError } from '../../lib/errors.ts';
import { publishes } from '../allocator/ports.ts';
import { newClusterId } from '../ca/token.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import type { ServiceSpec } from '../state/service-spec.ts';
import { clusterOf, type View } from '../state/view.ts';
import { freeSubnet, rangesIn } from './subnets.ts';

const NAME = 'ingress';
/** Range of the network in a cluster without pools of its own. */
const SUBNET = { subnet: '10.255.0.0/16', gateway: '10.255.0.1' };
const VNI = 4096;

/** A stage: the network over which published ports lead to tasks on other nodes, until a client has removed it. */
export function seedIngress(draft: Draft, now: Temporal.Instant): void {
  const cluster = draft.get('cluster', '');
  if (cluster?.ingressRemoved === true || ingressIn(draft) !== undefined) return;
  const at = now.toString();
  draft.put('network', {
    id: newClusterId(),
    createdAt: at,
    updatedAt: at,
    name: NAME,
    labels: {},
    internal: false,
    ingress: true,
    encrypted: false,
    options: {},
    vni: VNI,
    subnets: [cluster?.addressPools === undefined ? SUBNET : freeSubnet(draft, rangesIn(draft))],
  });
}

/** Refuses a second network of published ports, and one that containers join. */
export function refuseIngress(view: View, isAttachable: boolean): void {
  if (isAttachable) {
    throw new EngineError('invalid', 'rpc error: code = InvalidArgument desc = ingress network cannot be attachable');
  }
  const present = ingressIn(view);
  if (present === undefined) return;
  const reason = `ingress network (${present.id}) is already present`;
  throw new EngineError('conflict', `rpc error: code = AlreadyExists desc = ${reason}`);
}

/** Removes the network of published ports; throws `invalid` while a service needs it. */
export function removeIngress(draft: Draft, { id }: Stored<'network'>): void {
  const user = draft.all('service').find(({ spec }) => publishes(spec));
  if (user !== undefined) {
    throw precondition(`ingress network cannot be removed because service ${user.id} depends on it`);
  }
  draft.put('cluster', { ...clusterOf(draft), ingressRemoved: true });
  for (const node of draft.all('node')) {
    const { ingress, ...rest } = node;
    if (ingress !== undefined) draft.put('node', rest);
  }
  draft.delete('network', id);
}

/** Refuses published ports in a cluster whose network for them was removed. */
export function refuseWithoutIngress(view: View, spec: ServiceSpec): void {
  if (!publishes(spec) || view.get('cluster', '')?.ingressRemoved !== true || ingressIn(view) !== undefined) return;
  throw precondition('service needs ingress network, but no ingress network is present');
}

function ingressIn(view: View): Stored<'network'> | undefined {
  return view.all('network').find(({ ingress }) => ingress);
}

/** dockerd's words. */
function precondition(reason: string): EngineError {
  return new EngineError('invalid', `rpc error: code = FailedPrecondition desc = ${reason}`);
}
