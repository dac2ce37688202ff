import { AddressLeases } from '../../networks/addresses/address-leases.ts';
import { parseCidr } from '../../networks/addresses/cidr.ts';
import type { NetworkRecord } from '../state/records.ts';
import type { View } from '../state/view.ts';

type Leases = { leases: AddressLeases; prefixLength: number };

/** The addresses in use in all networks of the cluster, by the records of services and tasks. */
export class NetworkAddresses {
  readonly #view: View;
  readonly #networks = new Map<string, Leases[]>();
  #used: Map<string, string[]> | undefined;

  constructor(view: View) {
    this.#view = view;
  }

  /** Takes the lowest free address, as `10.0.1.5/24`. Throws where the network is unknown or full. */
  take(network: string): string {
    const subnets = this.#leasesOf(network);
    for (const [at, { leases, prefixLength }] of subnets.entries()) {
      try {
        return `${leases.take()}/${prefixLength}`;
      } catch (error) {
        if (at === subnets.length - 1) throw error;
      }
    }
    throw new Error(`network ${network} not found`);
  }

  #leasesOf(id: string): Leases[] {
    let subnets = this.#networks.get(id);
    if (subnets === undefined) {
      const network = this.#view.get('network', id);
      subnets = network === undefined ? [] : this.#opened(network);
      this.#networks.set(id, subnets);
    }
    return subnets;
  }

  #opened({ id, subnets }: NetworkRecord): Leases[] {
    this.#used ??= usedAddresses(this.#view);
    const used = this.#used.get(id) ?? [];
    return subnets.flatMap(({ subnet, gateway, range }) => {
      const whole = parseCidr(subnet)?.range;
      if (whole === undefined) return [];
      const part = range === undefined ? undefined : parseCidr(range)?.range;
      return [{ leases: new AddressLeases(whole, [gateway, ...used], part), prefixLength: whole.prefixLength }];
    });
  }
}

/** Without their prefix lengths, by network. */
function usedAddresses(view: View): Map<string, string[]> {
  const used = new Map<string, string[]>();
  const note = ({ network, address }: { network: string; address: string }): void => {
    const list = used.get(network);
    const ip = address.split('/')[0]!;
    if (list === undefined) used.set(network, [ip]);
    else list.push(ip);
  };
  for (const { endpoint } of view.all('service')) endpoint.virtualIps.forEach(note);
  for (const { addresses } of view.all('task')) addresses.forEach(note);
  return used;
}
