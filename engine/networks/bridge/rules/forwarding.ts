import type { Nftables, NftObject, NftRule } from '../../../host/network/nftables.ts';
import type { Family } from '../../../lib/notations/ip-address.ts';
import { USER_BRIDGE_PREFIX } from '../bridge-settings.ts';
import { NFT_FAMILY, type BridgeRules } from './ruleset.ts';

/**
 * Accepts the traffic of our bridges in iptables' FORWARD chain.
 *
 * dockerd and firewall front ends set that chain's policy to DROP, and no other chain can accept what one chain drops.
 * A missing chain is created in the form that iptables itself uses, so that a dockerd that starts later keeps our
 * rules. False: all of it was there.
 */
export function admitForwarding(
  nft: Nftables,
  owner: string,
  family: Family,
  networks: readonly BridgeRules[],
): boolean {
  const ip = NFT_FAMILY[family];
  const chain = nft.list(`list chain ${ip} filter FORWARD`);
  const present = new Set(rulesOf(chain ?? []).map(({ comment }) => comment));
  const commands = chain === undefined ? chainTexts(ip) : [];
  const missing = [...new Set(networks.map(({ bridge }) => patternOf(bridge)))]
    .flatMap((bridge) => [`iifname "${bridge}"`, `oifname "${bridge}"`])
    .filter((match) => !present.has(commentOf(owner, match)))
    .map((match) => `insert rule ${ip} filter FORWARD ${match} counter accept comment "${commentOf(owner, match)}"`);
  if (missing.length > 0) nft.run([...commands, ...missing].join('\n'));
  return missing.length > 0;
}

/** Removes the accepting rules of one network. False: other networks share them. */
export function dropForwardingOf(nft: Nftables, owner: string, family: Family, { bridge }: BridgeRules): boolean {
  if (patternOf(bridge) !== bridge) return false;
  const own = new Set([`iifname "${bridge}"`, `oifname "${bridge}"`].map((match) => commentOf(owner, match)));
  const chain = nft.list(`list chain ${NFT_FAMILY[family]} filter FORWARD`) ?? [];
  const rules = rulesOf(chain).filter(({ comment }) => own.has(comment ?? ''));
  if (rules.length > 0) nft.run(rules.map(deleteRule).join('\n'));
  return true;
}

/** Removes the accepting rules, and the chain if its table is otherwise empty. */
export function dropForwarding(nft: Nftables, owner: string, family: Family): void {
  const ip = NFT_FAMILY[family];
  const ours = rulesOf(nft.list(`list chain ${ip} filter FORWARD`) ?? []).filter(({ comment }) =>
    comment?.startsWith(`${owner} `),
  );
  if (ours.length === 0) return;
  nft.run(ours.map(deleteRule).join('\n'));
  const left = nft.list(`list table ${ip} filter`) ?? [];
  const chains = left.flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  const bare = rulesOf(left).length === 0 && chains.every((chain) => chain.name === 'FORWARD');
  if (bare && chains[0]?.policy === 'accept') nft.run(`delete table ${ip} filter`);
}

/** One pattern for all user networks, so that their number does not lengthen the chain. */
export function patternOf(bridge: string): string {
  return bridge.startsWith(USER_BRIDGE_PREFIX) ? `${USER_BRIDGE_PREFIX}*` : bridge;
}

function deleteRule({ family, handle }: NftRule): string {
  return `delete rule ${family} filter FORWARD handle ${handle}`;
}

function chainTexts(ip: 'ip' | 'ip6'): string[] {
  return [
    `add table ${ip} filter`,
    `add chain ${ip} filter FORWARD { type filter hook forward priority 0; policy accept; }`,
  ];
}

function commentOf(owner: string, match: string): string {
  return `${owner} ${match.replaceAll('"', '')}`;
}

function rulesOf(objects: readonly NftObject[]): NftRule[] {
  return objects.flatMap(({ rule }) => (rule === undefined ? [] : [rule]));
}
