import { EngineError, refuseIf } from '../../lib/errors.ts';
import { isWithin, MAX_RECORD_BYTES } from '../../lib/notations/field-schemas.ts';
import type { ClusterNetworks } from '../../networks/overlay/cluster-networks.ts';
import { recordOf } from '../../networks/overlay/record.ts';
import type { CreateNetworkBody } from '../../networks/schema.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import type { Manager } from '../membership/manager.ts';
import { networkForNodes } from './topology.ts';

/** The cluster's networks for the API of a manager. */
export function managerNetworks(manager: Manager): ClusterNetworks {
  return {
    all: () => [...manager.replica.all('network')].map((network) => recordOf(networkForNodes(network), '')),
    create: async (body) => {
      const { id } = await manager.write('createNetwork', newNetwork(body));
      return id;
    },
    remove: async (id) => await manager.write('removeNetwork', { id }),
  };
}

/** Refuses what the cluster's networks do not have. */
function newNetwork({
  Name,
  Labels,
  Options,
  Internal,
  Attachable,
  Ingress,
  EnableIPv6,
  IPAM,
}: CreateNetworkBody): WriteArguments<'createNetwork'> {
  refuseIf(
    !isWithin(MAX_RECORD_BYTES, [Labels, Options, IPAM]),
    'the settings of a network of the cluster are 512 KB at most',
  );
  if (EnableIPv6 === true) refuse('EnableIPv6');
  if ((IPAM?.Driver || 'default') !== 'default') refuse(`the IPAM driver ${IPAM?.Driver}`);
  const ranges = (IPAM?.Config ?? []).map((wire) => {
    const { Subnet = '', IPRange = '', Gateway = '', AuxiliaryAddresses, AuxAddress } = wire ?? {};
    const auxiliary = AuxiliaryAddresses ?? AuxAddress ?? {};
    refuseIf(Subnet === '', `Invalid subnet ${Subnet} : invalid CIDR address: ${Subnet}`);
    return {
      subnet: Subnet,
      ...(IPRange !== '' && { range: IPRange }),
      ...(Gateway !== '' && { gateway: Gateway }),
      ...(Object.keys(auxiliary).length > 0 && { auxiliary }),
    };
  });
  return {
    ...{ name: Name ?? '', labels: Labels ?? {}, options: Options ?? {}, internal: Internal ?? false, ranges },
    attachable: Attachable ?? false,
    ingress: Ingress ?? false,
  };
}

function refuse(what: string): never {
  throw new EngineError('notImplemented', `overlay networks with ${what} are not implemented`);
}
