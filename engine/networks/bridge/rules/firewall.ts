import { existsSync } from 'node:fs';

import { Netlink } from '../../../host/network/netlink.ts';
import { changeElements } from '../../../host/network/nft-elements.ts';
import { NftError, Nftables, ruleGeneration } from '../../../host/network/nftables.ts';
import { append } from '../../../lib/append.ts';
import { hasCode } from '../../../lib/errors.ts';
import type { Family } from '../../../lib/notations/ip-address.ts';
import type { Place } from '../../endpoints/endpoint.ts';
import { isOnHost } from '../../endpoints/ports.ts';
import { admitForwarding, dropForwarding, dropForwardingOf, patternOf } from './forwarding.ts';
import { areNeighboursWhole, gatewayTexts, neighboursText, placeElements } from './neighbour-rules.ts';
import {
  addBridgeText,
  addText,
  deleteBridgeTexts,
  deleteTexts,
  isWhole,
  NFT_FAMILY,
  tableText,
  type BridgeRules,
  type Published,
  type RuleState,
} from './ruleset.ts';
import { removeStaleFlows } from './stale-flows.ts';

/**
 * The packet rules of this daemon: its own table, and accepting rules in the machine's FORWARD chain.
 *
 * `state` returns the rules to write when another program has flushed them.
 */
export class Firewall implements Disposable {
  readonly #table: string;
  readonly #state: () => RuleState;
  readonly #nft = new Nftables();
  readonly #netfilter = new Netlink('netfilter');
  readonly #route = new Netlink();
  // The kernel's generation number when all rules were last seen in force; any change of a rule raises it.
  #known: number | undefined;
  /** The families that the kernel has rules of. */
  readonly #families: readonly Family[];
  /** Whether the kernel, and the library, know the rules of neighbours. */
  readonly guardsNeighbours: boolean;
  /** The patterns that their FORWARD accepts. */
  readonly #admitted = new Set<string>();

  /** `table` is this daemon's own, so that several can share a machine. */
  constructor(table: string, state: () => RuleState) {
    this.#table = table;
    this.#state = state;
    this.#families = hasRulesOfSix(this.#nft, table) ? [4, 6] : [4];
    this.guardsNeighbours = hasRulesOfNeighbours(this.#nft, table);
  }

  get table(): string {
    return this.#table;
  }

  /** Writes all rules, replacing earlier ones. */
  write(): void {
    const state = this.#state();
    const before = ruleGeneration(this.#netfilter);
    const texts = this.#families.map((family) => tableText(family, this.#table, state));
    if (this.guardsNeighbours) texts.push(neighboursText(this.#table, state));
    this.#nft.run(texts.join('\n'));
    this.#admitted.clear();
    this.#knowAfter(before, 1 + this.#admit(state.networks));
    this.#removeStaleFlows(state.published);
  }

  /** Checks the rules and writes missing ones. Costs 0.02 ms when no rule of the machine has changed. */
  verify(): void {
    const generation = ruleGeneration(this.#netfilter);
    if (generation === this.#known) return;
    const state = this.#state();
    if (this.#families.every((family) => this.#isWhole(family, state)) && this.#areNeighboursWhole(state)) {
      this.#knowAfter(generation, this.#admit(state.networks));
    } else {
      this.write();
    }
  }

  /** Admits a network that `state` does not know yet. */
  addBridge(network: BridgeRules): void {
    this.verify();
    const texts = this.#families.map((family) => addBridgeText(family, this.#table, network));
    if (this.guardsNeighbours) append(texts, gatewayTexts('add', this.#table, network));
    this.#add(() => this.#nft.run(texts.join('\n')));
    if (familiesOf(network).every((family) => this.#admitted.has(admissionOf(family, network)))) return;
    const before = this.#known;
    this.#knowAfter(before, this.#admit([network]));
  }

  /** Forgets a network; a forgotten one is not an error. */
  deleteBridge(network: BridgeRules): void {
    const texts = this.#families.flatMap((family) => deleteBridgeTexts(family, this.#table, network));
    if (this.guardsNeighbours) append(texts, gatewayTexts('delete', this.#table, network));
    this.#delete(texts, (some) => this.#nft.run(some.join('\n')));
    for (const family of familiesOf(network)) {
      if (!dropForwardingOf(this.#nft, this.#table, family, network)) continue;
      this.#admitted.delete(admissionOf(family, network));
      this.#known = undefined;
    }
  }

  /** Keeps others from claiming a container's addresses. */
  addPlace(place: Place): void {
    if (!this.guardsNeighbours) return;
    this.#add(() => changeElements(this.#netfilter, 'add', this.#table, placeElements(place)));
  }

  /** Frees a container's addresses; free ones are not an error. */
  deletePlace(place: Place): void {
    if (!this.guardsNeighbours) return;
    this.#delete(placeElements(place), (some) => changeElements(this.#netfilter, 'delete', this.#table, some));
  }

  /** Publishes ports, all or none. */
  publish(published: readonly Published[]): void {
    if (published.length === 0) return;
    this.#add(() => this.#nft.run(addText(this.#table, published)));
    this.#removeStaleFlows(published);
  }

  /** Redirects published ports to another address. */
  movePorts(from: readonly Published[], to: readonly Published[]): void {
    if (from.length === 0) return;
    this.unpublish(from);
    this.publish(to);
  }

  /** Unpublishes ports; unpublished ones are not an error. */
  unpublish(published: readonly Published[]): void {
    if (published.length === 0) return;
    const texts = deleteTexts(this.#table, published);
    this.#delete(texts, (some) => this.#nft.run(some.join('\n')));
  }

  /** Removes every rule of this daemon. */
  remove(): void {
    for (const family of [4, 6] as const) {
      ignoreMissing(() => this.#nft.run(`delete table ${NFT_FAMILY[family]} ${this.#table}`));
      dropForwarding(this.#nft, this.#table, family);
    }
    if (this.guardsNeighbours) ignoreMissing(() => this.#nft.run(`delete table bridge ${this.#table}`));
    this.#admitted.clear();
    this.#known = undefined;
  }

  [Symbol.dispose](): void {
    this.#nft[Symbol.dispose]();
    this.#netfilter[Symbol.dispose]();
    this.#route[Symbol.dispose]();
  }

  /** Flows that began without the rules, or with others. */
  #removeStaleFlows(published: readonly Published[]): void {
    const translated = published.filter(({ port }) => isOnHost(port));
    removeStaleFlows({ netfilter: this.#netfilter, route: this.#route }, translated);
  }

  /** Removes all in one transaction, or, if one of them is missing, the others one by one. */
  #delete<T>(all: readonly T[], remove: (some: readonly T[]) => void): void {
    try {
      this.#change(() => remove(all));
    } catch (error) {
      if (!isMissing(error)) throw error;
      for (const one of all) ignoreMissing(() => remove([one]));
    }
  }

  /** Another program may have flushed the rules since they were last verified: then all are written first. */
  #add(add: () => void): void {
    try {
      this.#change(add);
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.write();
      this.#change(add);
    }
  }

  #change(change: () => void): void {
    const before = this.#known;
    change();
    this.#knowAfter(before, 1);
  }

  /**
   * After `steps` changes of our own since the rules were seen in force. More steps than that mean that another program
   * has changed rules meanwhile, which the next check reads.
   */
  #knowAfter(before: number | undefined, steps: number): void {
    const after = ruleGeneration(this.#netfilter);
    this.#known = before !== undefined && after === before + steps ? after : undefined;
  }

  /** Whether nothing is missing that was written: rules of a chain, networks, or published ports. */
  #isWhole(family: Family, state: RuleState): boolean {
    const listed = this.#nft.list(`list table ${NFT_FAMILY[family]} ${this.#table}`);
    return listed !== undefined && isWhole(listed, family, state);
  }

  #areNeighboursWhole(state: RuleState): boolean {
    if (!this.guardsNeighbours) return true;
    const listed = this.#nft.list(`list table bridge ${this.#table}`);
    return listed !== undefined && areNeighboursWhole(listed, state);
  }

  /** Returns how many transactions it took. */
  #admit(networks: readonly BridgeRules[]): number {
    let steps = 0;
    for (const family of this.#families) {
      const concerned = networks.filter((network) => familiesOf(network).includes(family));
      if (concerned.length === 0) continue;
      if (admitForwarding(this.#nft, this.#table, family, concerned)) steps += 1;
      for (const network of concerned) this.#admitted.add(admissionOf(family, network));
    }
    return steps;
  }
}

function ignoreMissing(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Whether the kernel has IPv6 and rules for it; the table for this question is never in force. */
function hasRulesOfSix(nft: Nftables, table: string): boolean {
  if (!existsSync('/proc/sys/net/ipv6')) return false;
  try {
    nft.run(`add table ip6 ${table}-probe\ndelete table ip6 ${table}-probe`);
    return true;
  } catch (error) {
    if (error instanceof NftError && error.code === 'EOPNOTSUPP') return false;
    throw error;
  }
}

/** Whether the kernel has these rules, and the library the words for them; the table for this question is never in force. */
function hasRulesOfNeighbours(nft: Nftables, table: string): boolean {
  const probe = `${table}-probe`;
  try {
    nft.run(`${neighboursText(probe, { networks: [], places: [] })}delete table bridge ${probe}`);
    return true;
  } catch (error) {
    if (error instanceof NftError) return false;
    throw error;
  }
}

/** The families that a network has. */
function familiesOf({ subnet, subnet6 }: BridgeRules): Family[] {
  return [...(subnet === undefined ? [] : [4 as const]), ...(subnet6 === undefined ? [] : [6 as const])];
}

function admissionOf(family: Family, { bridge }: BridgeRules): string {
  return `${family} ${patternOf(bridge)}`;
}

function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT');
}
