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

/** The same for an existing namespace. */
export function addDnsRulesIn(netns: number): void {
  withNetns(netns, addDnsRules);
}

const RULES = `
add table ip gantry-dns
delete table ip gantry-dns
table ip gantry-dns {
  chain output {
    type nat hook output priority -100; policy accept;
    ip daddr ${DNS_ADDRESS} udp dport 53 dnat to ${DNS_ADDRESS}:${DNS_PORT}
    ip daddr ${DNS_ADDRESS} tcp dport 53 dnat to ${DNS_ADDRESS}:${DNS_PORT}
  }
}
`;
