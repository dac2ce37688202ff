import { createHash } from 'node:crypto';

import { Nftables } from '../../host/network/nftables.ts';
import { isSix, parseIp, type Family } from '../../lib/notations/ip-address.ts';

/** A network on the wire, and the address at which this host takes its packets. */
type Guarded = Readonly<{ vni: number; local: string }>;

/** Bits of the packet from its transport header on: after 8 bytes of UDP and 4 of VXLAN. */
const VNI_IN_PACKET = '@th,96,24';

/**
 * The kernel listens for VXLAN on all addresses of the host, and takes it from anybody. These rules drop what comes for one of
 * our networks to another address than the advertised one, or from another than a node's; networks of other programs are none
 * of theirs. Packets of the machine's own containers are dropped before, whatever sender they name (`../bridge/rules/ruleset.ts`).
 */
export class VxlanGuard {
  readonly #table: string;
  /** Undefined: what an earlier daemon has written. */
  #written: string | undefined;

  /** `folder`: this daemon's own, so that several can share a machine. */
  constructor(folder: string) {
    this.#table = `gantry-vxlan-${createHash('sha1').update(folder).digest('hex').slice(0, 12)}`;
  }

  /** Nothing happens where nothing has changed; without networks the rules go. `nodes`: the addresses of others. */
  write(networks: readonly Guarded[], port: number, nodes: Iterable<string>): void {
    const text = networks.length === 0 ? '' : this.#text(networks, port, new Set(nodes));
    if (text === this.#written) return;
    using nft = new Nftables();
    nft.run(`${this.#removal}${text}`);
    this.#written = text;
  }

  get #removal(): string {
    return `add table inet ${this.#table}\ndelete table inet ${this.#table}\n`;
  }

  #text(networks: readonly Guarded[], port: number, nodes: ReadonlySet<string>): string {
    const rules = networks.flatMap(({ vni, local }) => {
      const family = isSix(local) ? 'ip6' : 'ip';
      return [`${family} daddr != ${local}`, `${family} saddr != @${family}_nodes`].map(
        (isForeign) => `    udp dport ${port} ${isForeign} ${VNI_IN_PACKET} ${vni} drop`,
      );
    });
    return `table inet ${this.#table} {
  set ip_nodes { type ipv4_addr; ${elementsOf(4, nodes)} }
  set ip6_nodes { type ipv6_addr; ${elementsOf(6, nodes)} }
  chain in {
    type filter hook input priority filter; policy accept;
${rules.join('\n')}
  }
}
`;
  }
}

/** Texts that are no addresses are left out: they come from other machines. */
function elementsOf(family: Family, nodes: ReadonlySet<string>): string {
  const own = [...nodes].filter((node) => parseIp(node)?.family === family);
  return own.length === 0 ? '' : `elements = { ${own.toSorted().join(', ')} };`;
}
