import { Type } from 'typebox';

import { EngineError, refuseIf } from '../../lib/errors.ts';
import { isClusterName } from '../../lib/notations/names.ts';
import { cidrText, parseCidr } from '../../networks/addresses/cidr.ts';
import { addressesOf } from '../../networks/addresses/pools.ts';
import { VNI_OPTION } from '../../networks/overlay/driver.ts';
import { mtuOption } from '../../networks/settings/options.ts';
import { newClusterId } from '../ca/token.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import type { Draft } from '../state/draft.ts';
import type { NetworkRecord } from '../state/records.ts';
import type { View } from '../state/view.ts';
import { refuseIngress } from './ingress.ts';
import { freeSubnet, rangesIn } from './subnets.ts';

const Texts = Type.Record(Type.String(), Type.String());

/** A new network as a manager asks the leader for it. Without ranges one is chosen. */
export const NewNetwork = Type.Object({
  name: Type.String(),
  labels: Texts,
  options: Texts,
  internal: Type.Boolean(),
  ranges: Type.Array(
    Type.Object({
      subnet: Type.String(),
      range: Type.Optional(Type.String()),
      gateway: Type.Optional(Type.String()),
      auxiliary: Type.Optional(Texts),
    }),
  ),
  attachable: Type.Optional(Type.Boolean()),
  ingress: Type.Optional(Type.Boolean()),
});

const FIRST_VNI = 4096;
const LAST_VNI = 0xff_ff_ff;

/** POST /networks/create with the driver `overlay`. Returns the new id. Throws `invalid`, `conflict` and `forbidden`. */
export function createNetwork(
  draft: Draft,
  { name, labels, options, internal, ranges, attachable = false, ingress = false }: WriteArguments<'createNetwork'>,
  now: Temporal.Instant,
): { id: string } {
  if (!isClusterName(name)) {
    throw new EngineError(
      'invalid',
      'rpc error: code = InvalidArgument desc = name must be valid as a DNS name component',
    );
  }
  if (draft.all('network').some((network) => network.name === name)) {
    throw new EngineError('conflict', `network with name ${name} already exists`);
  }
  refuseUnknownOptions(options);
  if (ingress) refuseIngress(draft, attachable);
  const at = now.toString();
  const network: NetworkRecord = {
    id: newClusterId(),
    createdAt: at,
    updatedAt: at,
    name,
    labels,
    internal,
    ingress,
    encrypted: false,
    options,
    vni: vniOf(draft, options),
    subnets: subnetsOf(draft, name, ranges),
    ...(attachable ? { attachable } : {}),
  };
  draft.put('network', network);
  return { id: network.id };
}

function refuseUnknownOptions(options: Readonly<Record<string, string>>): void {
  mtuOption(options);
  if (!('encrypted' in options)) return;
  throw new EngineError(
    'notImplemented',
    'the option encrypted is not implemented: the traffic of overlay networks is not encrypted',
  );
}

/** The lowest free number, or the one that the client names. */
function vniOf(view: View, options: Readonly<Record<string, string>>): number {
  const used = new Set(view.all('network').map(({ vni }) => vni));
  const named = options[VNI_OPTION];
  if (named !== undefined) {
    const vni = Number(named.split(',')[0]);
    refuseIf(!Number.isSafeInteger(vni) || vni < 1 || vni > LAST_VNI, `invalid vxlan id value "${named}" passed`);
    refuseIf(used.has(vni), `the vxlan id ${vni} is in use by another network`);
    return vni;
  }
  for (let vni = FIRST_VNI; vni <= LAST_VNI; vni += 1) if (!used.has(vni)) return vni;
  throw new EngineError('failed', 'all numbers of overlay networks are in use');
}

function subnetsOf(
  view: View,
  name: string,
  ranges: WriteArguments<'createNetwork'>['ranges'],
): NetworkRecord['subnets'] {
  const networks = rangesIn(view);
  if (ranges.length === 0) return [freeSubnet(view, networks)];
  return ranges.map((wanted) => {
    refuseIf(parseCidr(wanted.subnet)?.range.family === 6, 'overlay networks have addresses of IPv4 only');
    const { subnet, gateway } = addressesOf(name, wanted, { networks, machine: () => [], pools: [] });
    networks.push(subnet);
    const { range, auxiliary } = wanted;
    return {
      ...{ subnet: cidrText(subnet), gateway },
      ...(range !== undefined && { range }),
      ...(auxiliary !== undefined && { auxiliary }),
    };
  });
}
