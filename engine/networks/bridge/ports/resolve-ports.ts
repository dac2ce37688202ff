import { refuseIf } from '../../../lib/errors.ts';
import { isSix } from '../../../lib/notations/ip-address.ts';
import type { Place } from '../../endpoints/endpoint.ts';
import { LOOPBACK_SIX, type PublishedPort } from '../../endpoints/ports.ts';
import type { Published } from '../rules/ruleset.ts';

/** The published ports for the rules: each leads to the address of its own family. */
export function resolvePublishedPorts({ ipAddress, ipv6 }: Place, ports: readonly PublishedPort[]): Published[] {
  return ports.flatMap((port): Published[] => {
    if (port.hostIp === LOOPBACK_SIX) return [];
    if (!isSix(port.hostIp)) return ipAddress === '' ? [] : [{ ipAddress, port }];
    return ipv6 === undefined ? [] : [{ ipAddress: ipv6.ipAddress, port }];
  });
}

/** Throws `invalid` for a published port whose family the container lacks. */
export function checkHostIp(ip: string, { ipv6 }: Place): void {
  if (!isSix(ip) || ip === LOOPBACK_SIX) return;
  refuseIf(ipv6 === undefined, `ports cannot be published on ${ip}: the network has no IPv6`);
}
