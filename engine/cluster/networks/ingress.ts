import { newClusterId } from '../ca/token.ts';
import type { Draft } from '../state/draft.ts';

const NAME = 'ingress';
const SUBNET = { subnet: '10.255.0.0/16', gateway: '10.255.0.1' };
const VNI = 4096;

/** A stage: the network over which published ports lead to tasks on other nodes. */
export function seedIngress(draft: Draft, now: Temporal.Instant): void {
  if (draft.all('network').some(({ ingress }) => ingress)) return;
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
    subnets: [SUBNET],
  });
}
