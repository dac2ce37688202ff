import { writeFileSync } from 'node:fs';

import { ignoreRouters } from '../../host/network/link-settings.ts';
import { changeLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { isRootless } from '../../host/rootless.ts';
import { newContainerNetns } from '../../host/users/mapped-netns.ts';
import { hasCode } from '../../lib/errors.ts';
import { addDnsRules } from '../dns/rules.ts';

/**
 * A namespace with only loopback, for the network `none` and for containers without a network. `usersOf`: a process whose
 * user namespace owns it.
 */
export function loopbackNetns(usersOf?: number): number {
  return newContainerNetns(() => {
    prepareNetns();
    using route = new Netlink();
    route.apply(changeLink(LOOPBACK, { up: true }));
  }, usersOf);
}

/** A namespace for user networks: with the way to their names. */
export function userNetns(): number {
  return newContainerNetns(() => {
    prepareNetns();
    addDnsRules();
    using route = new Netlink();
    route.apply(changeLink(LOOPBACK, { up: true }));
  });
}

/** Index of the link in every namespace. */
export const LOOPBACK = 1;

/** As in dockerd: no IPv6, every user may bind every port, and `ping` needs no capability. */
const SYSCTLS = {
  // Without IPv6 there is no duplicate address detection either, which takes a second.
  'ipv6/conf/all/disable_ipv6': '1',
  'ipv4/conf/all/accept_redirects': '0', // else a link accepts them whatever its own setting is
  'ipv4/ip_unprivileged_port_start': '0',
  // A user's namespace has fewer groups, and the kernel refuses those that it lacks.
  'ipv4/ping_group_range': `0 ${isRootless ? 65_535 : 2_147_483_647}`,
} as const;

/** Sets up a new namespace; this thread is in it. */
export function prepareNetns(): void {
  for (const [name, value] of Object.entries(SYSCTLS)) {
    try {
      writeFileSync(`/proc/sys/net/${name}`, value);
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error; // a kernel without IPv6
    }
  }
  ignoreRouters('default'); // also links that come later: of overlays, and those that plugins move here
}
