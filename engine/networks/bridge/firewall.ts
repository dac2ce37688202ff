import { Netlink } from '../../host/network/netlink.ts';
import { NftError, Nftables, ruleGeneration } from '../../host/network/nftables.ts';
import { admitForwarding, dropForwarding, dropForwardingOf, patternOf } from './forwarding.ts';
import {
  addBridgeText,
  addText,
  deleteBridgeTexts,
  deleteText,
  tableText,
  type BridgeRules,
  type Published,
} from './ruleset.ts';

/** The rules that have to be in force. */
export type RuleState = Readonly<{ networks: readonly BridgeRules[]; published: readonly Published[] }>;

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
  // The kernel's generation number when all rules were last seen in force; any change of a rule raises it.
  #known: number | undefined;
  /** The patterns that FORWARD accepts, as of then. */
  readonly #admitted = new Set<string>();

  /** `table` is this daemon's own, so that several can share a machine. */
  constructor(table: string, state: () => RuleState) {
    this.#table = table;
    this.#state = state;
  }

  get table(): string {
    return this.#table;
  }

  /** Writes all rules, replacing earlier ones. */
  write(): void {
    const { networks, published } = this.#state();
    this.#nft.run(tableText(this.#table, networks, published));
    this.#admit(networks);
    this.#known = ruleGeneration(this.#netfilter);
  }

  /** Checks the rules and writes missing ones. Costs 0.02 ms when no rule of the machine has changed. */
  verify(): void {
    const generation = ruleGeneration(this.#netfilter);
    if (generation === this.#known) return;
    if (this.#nft.list(`list chain ip ${this.#table} forward`) === undefined) {
      this.write();
      return;
    }
    this.#admit(this.#state().networks);
    this.#known = ruleGeneration(this.#netfilter);
  }

  /** Admits a network that `state` does not know yet. */
  addBridge(network: BridgeRules): void {
    this.verify();
    this.#add(addBridgeText(this.#table, network));
    if (this.#admitted.has(patternOf(network.bridge))) return;
    this.#admit([network]);
    this.#known = ruleGeneration(this.#netfilter);
  }

  /** Forgets a network; a forgotten one is not an error. */
  deleteBridge(network: BridgeRules): void {
    this.#delete(deleteBridgeTexts(this.#table, network));
    if (!dropForwardingOf(this.#nft, this.#table, network)) return;
    this.#admitted.delete(network.bridge);
    this.#known = undefined;
  }

  /** Publishes ports, all or none. */
  publish(published: readonly Published[]): void {
    if (published.length === 0) return;
    this.#add(addText(this.#table, published));
  }

  /** Leads published ports to another address. */
  movePorts(from: readonly Published[], to: readonly Published[]): void {
    if (from.length === 0) return;
    this.unpublish(from);
    this.publish(to);
  }

  /** Unpublishes ports; unpublished ones are not an error. */
  unpublish(published: readonly Published[]): void {
    if (published.length === 0) return;
    this.#delete(published.map((one) => deleteText(this.#table, one)));
  }

  /** Removes every rule of this daemon. */
  remove(): void {
    this.#tryRun(`delete table ip ${this.#table}`);
    dropForwarding(this.#nft, this.#table);
    this.#admitted.clear();
    this.#known = undefined;
  }

  [Symbol.dispose](): void {
    this.#nft[Symbol.dispose]();
    this.#netfilter[Symbol.dispose]();
  }

  #delete(commands: readonly string[]): void {
    try {
      this.#change(commands.join('\n'));
    } catch (error) {
      if (!isMissing(error)) throw error;
      // One of them is missing, so the transaction failed: remove the others one by one.
      for (const command of commands) this.#tryRun(command);
    }
  }

  /** Another program may have flushed the rules since they were last verified: then all are written first. */
  #add(commands: string): void {
    try {
      this.#change(commands);
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.write();
      this.#change(commands);
    }
  }

  #change(commands: string): void {
    const before = this.#known;
    this.#nft.run(commands);
    // One step is our own change. More means that another program changed rules too, and the next check reads them.
    const after = ruleGeneration(this.#netfilter);
    this.#known = before !== undefined && after === before + 1 ? after : undefined;
  }

  #admit(networks: readonly BridgeRules[]): void {
    admitForwarding(this.#nft, this.#table, networks);
    for (const { bridge } of networks) this.#admitted.add(patternOf(bridge));
  }

  #tryRun(command: string): void {
    try {
      this.#nft.run(command);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof NftError && error.code === 'ENOENT';
}
