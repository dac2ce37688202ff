import { EngineError } from '../lib/errors.ts';
import { overlaps, parseCidr, type Cidr } from './cidr.ts';

// dockerd's ranges in dockerd's order, so that addresses are the usual ones.
const POOLS: readonly Cidr[] = [
  ...Array.from({ length: 15 }, (_, n) => ({ base: ip(172, 17 + n), prefixLength: 16 })),
  ...Array.from({ length: 16 }, (_, n) => ({ base: ip(192, 168, n * 16), prefixLength: 20 })),
];

/** The first private range that overlaps none in use on this machine. */
export function chooseSubnet(taken: readonly Cidr[]): Cidr {
  const free = POOLS.find((pool) => !taken.some((range) => overlaps(pool, range)));
  if (free === undefined) {
    throw new EngineError(
      'failed',
      'every private address range is in use on this machine: choose one for the containers with --bip',
    );
  }
  return free;
}

/** Reads `--bip`: the bridge's own address with the prefix length of the network. */
export function parseBip(bip: string): { subnet: Cidr; gateway: number } {
  const parsed = parseCidr(bip);
  if (parsed === undefined) throw new EngineError('invalid', `bip: ${bip} is not an address such as 172.30.0.1/16`);
  const { range, address } = parsed;
  if (range.prefixLength > 30 || range.prefixLength < 8) {
    throw new EngineError('invalid', `bip: the prefix length of ${bip} is not between 8 and 30`);
  }
  const size = 2 ** (32 - range.prefixLength);
  if (address === range.base || address === range.base + size - 1) {
    throw new EngineError('invalid', `bip: ${bip} is the base of the range, not an address in it`);
  }
  return { subnet: range, gateway: address };
}

function ip(a: number, b: number, c = 0): number {
  return ((a * 256 + b) * 256 + c) * 256;
}
