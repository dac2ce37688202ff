import { legacyFilterLayout } from '../../host/network/iptables.ts';
import { listLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { removeBridge } from './bridge-link.ts';
import { Firewall } from './firewall.ts';
import { dropLegacyForwarding } from './legacy-forwarding.ts';

/** Removes bridges and rules of this daemon from the machine; missing ones are not an error. */
export async function removeFromMachine(table: string, bridges: readonly string[], dataRoot: string): Promise<void> {
  using route = new Netlink();
  using firewall = new Firewall(table, () => ({ networks: [], published: [] }));
  firewall.remove();
  const there = new Set(listLinks(route).map(({ name }) => name));
  for (const name of bridges.filter((one) => there.has(one))) removeBridge(route, name, dataRoot);
  if (legacyFilterLayout() === undefined) return;
  for (const name of bridges) await dropLegacyForwarding(name);
}
