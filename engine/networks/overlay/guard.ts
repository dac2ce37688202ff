import { createHash } from 'node:crypto';

import { Nftables } from '../../host/network/nftables.ts';
import { isSix } from '../../lib/notations/ip-address.ts';
import { VXLAN_PORT } from './fabric.ts';

/** A network on the wire, and the address at which this host takes its packets. */
type Guarded = Readonly<{ vni: number; local: string }>;

/** Bits of the packet from its transport header on: after 8 bytes of UDP and 4 of VXLAN. */
const VNI_IN_PACKET = '@th,96,24';

/**
 * The kernel listens for VXLAN on all addresses of the host. These rules drop what comes for one of our networks to another
 * one than the advertised address; networks of other programs are none of theirs.
 */
export class VxlanGuard {
  readonly #table: string;
  /** Undefined: what an earlier daemon has written. */
  #written: string | undefined;

  /** `folder`: this daemon's own, so that several can share a machine. */
  constructor(folder: string) {
    this.#table = `gantry-vxlan-${createHash('sha1').update(folder).digest('hex').slice(0, 12)}`;
  }

  /** Nothing happens where nothing has changed; without networks the rules go. */
  write(networks: readonly Guarded[]): void {
    const text = networks.length === 0 ? '' : this.#text(networks);
    if (text === this.#written) return;
    using nft = new Nftables();
    nft.run(`${this.#removal}${text}`);
    this.#written = text;
  }

  get #removal(): string {
    return `add table inet ${this.#table}\ndelete table inet ${this.#table}\n`;
  }

  #text(networks: readonly Guarded[]): string {
    const rules = networks.map(({ vni, local }) => {
      const elsewhere = isSix(local) ? `ip6 daddr != ${local}` : `ip daddr != ${local}`;
      return `    udp dport ${VXLAN_PORT} ${elsewhere} ${VNI_IN_PACKET} ${vni} drop`;
    });
    return `table inet ${this.#table} {
  chain in {
    type filter hook input priority filter; policy accept;
${rules.join('\n')}
  }
}
`;
  }
}
