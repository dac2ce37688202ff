import type { Nftables, NftObject, NftRule } from '../../host/network/nftables.ts';
import type { BridgeRules } from './ruleset.ts';

/**
 * Accepts the traffic of our bridges in iptables' FORWARD chain.
 *
 * dockerd and firewall front ends set that chain's policy to DROP, and no other chain can accept what one chain drops.
 * A missing chain is created in the form that iptables itself uses, so that a dockerd that starts later keeps our
 * rules.
 */
export function admitForwarding(nft: Nftables, owner: string, networks: readonly BridgeRules[]): void {
  const chain = nft.list('list chain ip filter FORWARD');
  const present = new Set(rulesOf(chain ?? []).map(({ comment }) => comment));
  const commands = chain === undefined ? CHAIN : [];
  const missing = networks
    .flatMap(({ bridge }) => [`iifname "${bridge}"`, `oifname "${bridge}"`])
    .filter((match) => !present.has(commentOf(owner, match)))
    .map((match) => `insert rule ip filter FORWARD ${match} counter accept comment "${commentOf(owner, match)}"`);
  if (missing.length > 0) nft.run([...commands, ...missing].join('\n'));
}

/** Removes the accepting rules, and the chain if its table is otherwise empty. */
export function dropForwarding(nft: Nftables, owner: string): void {
  const ours = rulesOf(nft.list('list chain ip filter FORWARD') ?? []).filter(({ comment }) =>
    comment?.startsWith(`${owner} `),
  );
  if (ours.length === 0) return;
  nft.run(ours.map(({ handle }) => `delete rule ip filter FORWARD handle ${handle}`).join('\n'));
  const left = nft.list('list table ip filter') ?? [];
  const chains = left.flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  const bare = rulesOf(left).length === 0 && chains.every((chain) => chain.name === 'FORWARD');
  if (bare && chains[0]?.policy === 'accept') nft.run('delete table ip filter');
}

const CHAIN: readonly string[] = [
  'add table ip filter',
  'add chain ip filter FORWARD { type filter hook forward priority 0; policy accept; }',
];

function commentOf(owner: string, match: string): string {
  return `${owner} ${match.replaceAll('"', '')}`;
}

function rulesOf(objects: readonly NftObject[]): NftRule[] {
  return objects.flatMap(({ rule }) => (rule === undefined ? [] : [rule]));
}
