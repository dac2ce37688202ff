import { SystemError } from '../../../host/libc.ts';
import { isLocal } from '../../../host/network/addresses.ts';
import { forgetFlows, udpFlows, type UdpFlow } from '../../../host/network/conntrack.ts';
import type { Netlink } from '../../../host/network/netlink.ts';
import type { Family } from '../../../lib/notations/ip-address.ts';
import { familyOf, isAny, type Published } from './ruleset.ts';

type Kernel = Readonly<{ netfilter: Netlink; route: Netlink }>;

/**
 * Makes the kernel forget the flows of UDP to published ports that lead elsewhere than the rules do.
 *
 * A flow keeps the translation of its first packet: one that began before the port was published has none for as long as
 * its client keeps sending. Flows of containers to the same port of other machines stay.
 */
export function removeStaleFlows(kernel: Kernel, published: readonly Published[]): void {
  const byFamily = Map.groupBy(
    published.filter(({ port }) => port.protocol === 'udp'),
    familyOf,
  );
  for (const [family, ports] of byFamily) {
    try {
      forgetFlows(kernel.netfilter, family, misledFlows(kernel, family, ports));
    } catch (error) {
      // A kernel that cannot list its flows: a client that never pauses waits until its flow times out.
      if (!(error instanceof SystemError)) throw error;
    }
  }
}

function misledFlows({ netfilter, route }: Kernel, family: Family, published: readonly Published[]): UdpFlow[] {
  const [first, ...more] = published;
  const byPort = Map.groupBy(published, ({ port }) => port.hostPort);
  const flows = udpFlows(netfilter, family, more.length === 0 ? first?.port.hostPort : undefined);
  const local = new Map<string, boolean>();
  return flows.filter(({ ip, port, target, targetPort }) => {
    const candidates = byPort.get(port) ?? [];
    const rule = candidates.find((one) => one.port.hostIp === ip) ?? candidates.find(isAny);
    if (rule === undefined || (rule.ipAddress === target && rule.port.containerPort === targetPort)) return false;
    if (!local.has(ip)) local.set(ip, isLocal(route, ip));
    return local.get(ip);
  });
}
