import { legacyFilterLayout } from '../../host/network/iptables.ts';
import { deleteLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { knownLinks, ownBridges } from './bridge-link.ts';
import { Firewall } from './rules/firewall.ts';
import { patternOf } from './rules/forwarding.ts';
import { dropLegacyForwarding } from './rules/legacy-forwarding.ts';

/** The kernel takes 20 ms for each bridge, one after the other: more would hold up the end of a machine for seconds. */
const MAX_REMOVED = 16;

/**
 * Removes bridges and rules of this daemon from the machine; missing ones are not an error. Very many bridges stay, as
 * those of dockerd do, for the next daemon to find.
 */
export async function removeFromMachine(table: string, bridges: readonly string[], dataRoot: string): Promise<void> {
  using route = new Netlink();
  using firewall = new Firewall(table, () => ({ networks: [], published: [], closed: [], places: [] }));
  firewall.remove();
  const known = knownLinks(route);
  const own = ownBridges(known, dataRoot).filter((name) => bridges.includes(name));
  const indexes = own.map((name) => known.links.get(name)!.index);
  if (indexes.length > 0 && indexes.length <= MAX_REMOVED) await route.applyInBackground(...deleteLinks(indexes));
  if (legacyFilterLayout() === undefined) return;
  for (const pattern of new Set(bridges.map(patternOf))) await dropLegacyForwarding(pattern);
}
