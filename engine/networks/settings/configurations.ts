import { EngineError } from '../../lib/errors.ts';
import type { CreateNetworkBody } from '../schema.ts';
import type { Custom, NetworkRecord } from '../store.ts';

/** The driver that a network without anything but settings shows. */
export const CONFIGURATION_DRIVER = 'null';

const OPERATOR_FIELDS =
  'configuration network can only contain network specific fields. Network operator fields like ' +
  '[ ingress | internal | attachable | scope ] are not supported.';

/** Checks the fields of a creation that are about configurations, with dockerd's words. Throws `forbidden`. */
export function checkConfiguration({ ConfigOnly, ConfigFrom, Internal, Attachable, ...body }: CreateNetworkBody): void {
  const isFrom = !!ConfigFrom?.Network;
  if (ConfigOnly === true) {
    refuse(Internal === true || Attachable === true, OPERATOR_FIELDS);
    refuse(isFrom, 'a configuration network cannot depend on another configuration network');
  }
  const { IPAM, EnableIPv6, Options, Labels } = body;
  const hasIpam = (IPAM?.Config ?? []).length > 0 || Object.keys(IPAM?.Options ?? {}).length > 0;
  const hasOwn =
    hasIpam || EnableIPv6 === true || [Options, Labels].some((texts) => Object.keys(texts ?? {}).length > 0);
  refuse(
    isFrom && hasOwn,
    'user specified configurations are not supported if the network depends on a configuration network',
  );
}

/** The settings of a network that takes them from another one. Throws `notFound`. */
export function configuredBy(networks: readonly NetworkRecord[], from: string, own: Custom): Custom {
  const found = networks.find(({ name, custom }) => name === from && custom?.configOnly === true)?.custom;
  if (found === undefined) throw new EngineError('notFound', `configuration network "${from}" does not exist`);
  const { enableIPv6, options, labels, ipam } = found;
  return { ...own, enableIPv6, options, labels, ipam, configFrom: from };
}

/** Throws `forbidden` while networks have their settings from this one. */
export function refuseConfigurationInUse(networks: readonly NetworkRecord[], { name, custom }: NetworkRecord): void {
  const isUsed = custom?.configOnly === true && networks.some((other) => other.custom?.configFrom === name);
  refuse(isUsed, `configuration network "${name}" is in use`);
}

/** Throws `forbidden`: a configuration has no endpoints. */
export function refuseEndpoint(custom: Custom | undefined): void {
  refuse(custom?.configOnly === true, 'cannot create endpoint on configuration-only network');
}

function refuse(isRefused: boolean, reason: string): void {
  if (isRefused) throw new EngineError('forbidden', reason);
}
