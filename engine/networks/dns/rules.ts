import { withNetns } from '../../host/namespaces.ts';
import { Nftables } from '../../host/network/nftables.ts';

/** The address in the resolv.conf of containers on user networks. */
export const DNS_ADDRESS = '127.0.0.11';

/**
 * Where the resolver listens in every namespace. Port 53 stays free for name servers in containers, and the kernel never
 * chooses a port of this range by itself.
 */
export const DNS_PORT = 61_053;

/** Redirects queries for port 53 to the resolver. Repeatable; this thread is in the namespace. */
export function addDnsRules(): void {
  using nft = new Nftables();
  nft.run(RULES);
}

/** Adds the rules to an existing namespace. */
export function addDnsRulesIn(netns: number): void {
  withNetns(netns, addDnsRules);
}

/**
 * Ports are written over in the packets, both ways. A translation (`dnat`) would have the kernel track all connections
 * of the container, which takes a seventh of the time of a new one.
 *
 * A container that tracks connections for a firewall of its own sees port 53 both ways: after its tracking (-200) on the
 * way there, and before it on the way back.
 */
const RULES = `
add table ip gantry-dns
delete table ip gantry-dns
table ip gantry-dns {
  chain questions {
    type filter hook output priority mangle; policy accept;
    oif "lo" ip daddr ${DNS_ADDRESS} udp dport 53 udp dport set ${DNS_PORT}
    oif "lo" ip daddr ${DNS_ADDRESS} tcp dport 53 tcp dport set ${DNS_PORT}
  }
  chain answers {
    type filter hook output priority raw; policy accept;
    oif "lo" ip saddr ${DNS_ADDRESS} udp sport ${DNS_PORT} udp sport set 53
    oif "lo" ip saddr ${DNS_ADDRESS} tcp sport ${DNS_PORT} tcp sport set 53
  }
}
`;
