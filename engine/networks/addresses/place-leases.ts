import { parseIp } from '../../lib/notations/ip-address.ts';
import type { WantedPlace } from '../drivers/driver.ts';
import type { Place } from '../endpoints/endpoint.ts';
import { AddressLeases, addressOfMac, macOf, randomMac } from './address-leases.ts';
import { contains } from './cidr.ts';
import type { Addresses, NetworkAddresses } from './pools.ts';

/** One range of a network; its gateway is that of the endpoints with an address in it. */
type Range = Readonly<{ leases: AddressLeases; gateway: string }>;
type Ranges = readonly [Range, ...Range[]];
/** The place of IPv4 in a network without it. */
const NO_ADDRESS = { ipAddress: '', prefixLength: 0, gateway: '' } as const;
type Taken = Readonly<{ ipAddress: string; prefixLength: number; gateway: string }>;

/** The addresses of both families that a network gives its endpoints. */
export class PlaceLeases {
  readonly #four: Ranges | undefined;
  readonly #six: Ranges | undefined;
  readonly #isSixOfMac: boolean;

  /** `used`: the addresses of existing endpoints. */
  constructor(of: NetworkAddresses, used: readonly string[]) {
    const range = ({ subnet, range: chosen, gateway, auxiliary }: Addresses): Range => ({
      leases: new AddressLeases(subnet, [gateway, ...auxiliary, ...used], chosen),
      gateway,
    });
    const ranges = (first: Addresses): Ranges => {
      const more = (of.more ?? []).filter(({ subnet }) => subnet.family === first.subnet.family);
      return [range(first), ...more.map(range)];
    };
    this.#four = of.ipv4 === undefined ? undefined : ranges(of.ipv4);
    this.#six = of.ipv6 === undefined ? undefined : ranges(of.ipv6);
    this.#isSixOfMac = of.ipv6?.isOfMac ?? false;
  }

  /** Leases an endpoint's addresses; `undo` frees them. */
  take({ ip, ip6, mac }: WantedPlace, undo: DisposableStack): Omit<Place, 'link'> {
    const four = this.#four === undefined ? NO_ADDRESS : takeIn(this.#four, ip, undo);
    const place = { ...four, macAddress: mac ?? (this.#four === undefined ? randomMac() : macOf(four.ipAddress)) };
    if (this.#six === undefined) return place;
    const [{ leases }] = this.#six;
    const wanted = this.#isSixOfMac ? addressOfMac(leases.subnet, place.macAddress) : ip6;
    return { ...place, ipv6: takeIn(this.#six, wanted, undo) };
  }

  /** Frees the addresses; free ones are not an error. */
  release({ ipAddress, ipv6 }: Place): void {
    for (const { leases } of this.#four ?? []) leases.release(ipAddress);
    if (ipv6 !== undefined) for (const { leases } of this.#six ?? []) leases.release(ipv6.ipAddress);
  }
}

/** In the range of `wanted`, or the first that is not full; without such a one the first refuses. */
function takeIn(ranges: Ranges, wanted: string | undefined, undo: DisposableStack): Taken {
  const address = wanted === undefined ? undefined : parseIp(wanted);
  const fitting = ranges.find(({ leases }) =>
    address === undefined ? leases.hasFree : contains(leases.subnet, address),
  );
  const { leases, gateway } = fitting ?? ranges[0];
  const ipAddress = leases.take(wanted);
  undo.defer(() => leases.release(ipAddress));
  return { ipAddress, prefixLength: leases.subnet.prefixLength, gateway };
}
