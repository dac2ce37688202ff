import { EngineError } from '../../lib/errors.ts';
import { parseIp } from '../../lib/notations/ip-address.ts';
import { AddressLeases } from '../../networks/addresses/address-leases.ts';
import { contains, parseCidr } from '../../networks/addresses/cidr.ts';
import type { NetworkRecord } from '../state/records.ts';
import type { View } from '../state/view.ts';

type Leases = { leases: AddressLeases; prefixLength: number };
export type Addressed = Readonly<{ network: string; address: string }>;

/** The addresses in use in all networks of the cluster: those of services, tasks, and nodes. */
export class NetworkAddresses {
  /** Without their prefix lengths, by network. */
  readonly #used = new Map<string, Set<string>>();
  readonly #networks = new Map<string, Leases[]>();

  constructor(view: View) {
    for (const { endpoint } of view.all('service')) for (const one of endpoint.virtualIps) this.#note(one);
    for (const { addresses } of view.all('task')) for (const one of addresses) this.#note(one);
    for (const { network, address } of view.all('attachment')) {
      if (address !== '') this.#note({ network, address });
    }
    const network = view.all('network').find(({ ingress }) => ingress)?.id;
    for (const { ingress: address } of view.all('node')) {
      if (network !== undefined && address !== undefined) this.#note({ network, address });
    }
  }

  /**
   * Takes the lowest free address, as `10.0.1.5/24`, or `wanted`. Throws where the network is unknown or full, or somebody
   * else has the address.
   */
  take(view: View, network: string, wanted?: string): Addressed {
    const subnets = this.#leasesOf(view, network);
    const ip = parseIp(wanted ?? '');
    const isFit = ({ leases }: Leases): boolean => (ip === undefined ? leases.hasFree : contains(leases.subnet, ip));
    const subnet = subnets.find(isFit) ?? subnets[0];
    if (subnet === undefined) throw new EngineError('failed', `network ${network} not found`);
    const taken = { network, address: `${subnet.leases.take(wanted)}/${subnet.prefixLength}` };
    this.#note(taken);
    return taken;
  }

  /** Takes one in each network, or none: then it throws. */
  takeAll(view: View, networks: readonly string[]): Addressed[] {
    const taken: Addressed[] = [];
    try {
      for (const network of networks) taken.push(this.take(view, network));
      return taken;
    } catch (error) {
      for (const one of taken) this.release(one);
      throw error;
    }
  }

  release({ network, address }: Addressed): void {
    const ip = address.split('/')[0]!;
    this.#used.get(network)?.delete(ip);
    for (const { leases } of this.#networks.get(network) ?? []) leases.release(ip);
  }

  /** The network has changed, or is gone. */
  forget(network: string): void {
    this.#networks.delete(network);
  }

  #note({ network, address }: Addressed): void {
    const ips = this.#used.get(network);
    const ip = address.split('/')[0]!;
    if (ips === undefined) this.#used.set(network, new Set([ip]));
    else ips.add(ip);
  }

  #leasesOf(view: View, id: string): Leases[] {
    let subnets = this.#networks.get(id);
    if (subnets === undefined) {
      const network = view.get('network', id);
      if (network === undefined) return [];
      subnets = this.#opened(network);
      this.#networks.set(id, subnets);
    }
    return subnets;
  }

  #opened({ id, subnets }: NetworkRecord): Leases[] {
    const used = this.#used.get(id) ?? [];
    return subnets.flatMap(({ subnet, gateway, range, auxiliary = {} }) => {
      const whole = parseCidr(subnet)?.range;
      if (whole === undefined) return [];
      const part = range === undefined ? undefined : parseCidr(range)?.range;
      const taken = [gateway, ...Object.values(auxiliary), ...used];
      return [{ leases: new AddressLeases(whole, taken, part), prefixLength: whole.prefixLength }];
    });
  }
}
