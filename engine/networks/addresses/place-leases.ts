import type { WantedPlace } from '../drivers/driver.ts';
import type { Place } from '../endpoints/endpoint.ts';
import { AddressLeases, macOf } from './address-leases.ts';
import type { Addresses, NetworkAddresses } from './pools.ts';

/** The addresses of both families that a network gives its endpoints. */
export class PlaceLeases {
  readonly #of: NetworkAddresses;
  readonly #four: AddressLeases;
  readonly #six: AddressLeases | undefined;

  /** `used`: the addresses of existing endpoints. */
  constructor(of: NetworkAddresses, used: readonly string[]) {
    const leases = ({ subnet, range, gateway, auxiliary }: Addresses): AddressLeases =>
      new AddressLeases(subnet, [gateway, ...auxiliary, ...used], range);
    this.#of = of;
    this.#four = leases(of);
    this.#six = of.ipv6 === undefined ? undefined : leases(of.ipv6);
  }

  /** Leases an endpoint's addresses; `undo` frees them. */
  take({ ip, ip6, mac }: WantedPlace, undo: DisposableStack): Omit<Place, 'link'> {
    const { subnet, gateway, ipv6 } = this.#of;
    const ipAddress = this.#four.take(ip);
    undo.defer(() => this.#four.release(ipAddress));
    const place = { ipAddress, prefixLength: subnet.prefixLength, gateway, macAddress: mac ?? macOf(ipAddress) };
    if (this.#six === undefined || ipv6 === undefined) return place;
    const six = this.#six.take(ip6);
    undo.defer(() => this.#six?.release(six));
    return { ...place, ipv6: { ipAddress: six, prefixLength: ipv6.subnet.prefixLength, gateway: ipv6.gateway } };
  }

  /** Frees the addresses; free ones are not an error. */
  release({ ipAddress, ipv6 }: Place): void {
    this.#four.release(ipAddress);
    if (ipv6 !== undefined) this.#six?.release(ipv6.ipAddress);
  }
}
