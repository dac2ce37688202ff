import { Netlink } from '../../host/netlink.ts';
import { NftError, Nftables, ruleGeneration } from '../../host/nftables.ts';
import { admitForwarding, dropForwarding } from './forwarding.ts';
import { addText, deleteText, tableText, type BridgeRules, type Published } from './ruleset.ts';

/** What has to be in force. */
export type RuleState = Readonly<{ networks: readonly BridgeRules[]; published: readonly Published[] }>;

/**
 * The packet rules of this daemon: its own table, and its admission to the machine's FORWARD chain.
 *
 * `state` tells what has to be in force; it is asked when the rules are written anew, because somebody flushed them.
 */
export class Firewall implements Disposable {
  readonly #table: string;
  readonly #state: () => RuleState;
  readonly #nft = new Nftables();
  readonly #netfilter = new Netlink('netfilter');
  // The generation in which everything was seen to be in force; it changes when anybody changes a rule.
  #known: number | undefined;

  constructor(bridge: string, state: () => RuleState) {
    // One table per bridge: daemons with different bridges share a machine and leave each other alone.
    this.#table = `gantry-${bridge}`;
    this.#state = state;
  }

  /** Puts everything into force, whatever was there before. */
  write(): void {
    const { networks, published } = this.#state();
    this.#nft.run(tableText(this.#table, networks, published));
    admitForwarding(this.#nft, this.#table, networks);
    this.#known = ruleGeneration(this.#netfilter);
  }

  /** Looks whether the rules are still there and writes what is missing. Costs 0.02 ms when nobody changed any rule. */
  verify(): void {
    const generation = ruleGeneration(this.#netfilter);
    if (generation === this.#known) return;
    if (this.#nft.list(`list chain ip ${this.#table} forward`) === undefined) {
      this.write();
      return;
    }
    admitForwarding(this.#nft, this.#table, this.#state().networks);
    this.#known = ruleGeneration(this.#netfilter);
  }

  /** Publishes ports, all of them or none. */
  publish(published: readonly Published[]): void {
    if (published.length === 0) return;
    this.#change(addText(this.#table, published));
  }

  /** Ends the publishing; ports that are not published are no error. */
  unpublish(published: readonly Published[]): void {
    if (published.length === 0) return;
    const commands = published.map((one) => deleteText(this.#table, one));
    try {
      this.#change(commands.join('\n'));
    } catch (error) {
      if (!isMissing(error)) throw error;
      // One of them is missing, so nothing was done: the others have to go one by one.
      for (const command of commands) this.#tryRun(command);
    }
  }

  /** Removes every rule of this daemon. */
  remove(): void {
    this.#tryRun(`delete table ip ${this.#table}`);
    dropForwarding(this.#nft, this.#table);
    this.#known = undefined;
  }

  [Symbol.dispose](): void {
    this.#nft[Symbol.dispose]();
    this.#netfilter[Symbol.dispose]();
  }

  #change(commands: string): void {
    const before = this.#known;
    this.#nft.run(commands);
    // Exactly one step further: it was ours. Otherwise somebody changed rules as well, and the next look is thorough.
    const after = ruleGeneration(this.#netfilter);
    this.#known = before !== undefined && after === before + 1 ? after : undefined;
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
