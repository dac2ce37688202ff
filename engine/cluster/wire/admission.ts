import { parseIp } from '../../lib/notations/ip-address.ts';

const MAX_STRANGERS = 512;
const MAX_STRANGERS_PER_ADDRESS = 32;
const MAX_WAITING = 4096;
/** Nodes behind one address, all of which may look for a new leader at once. */
const MAX_WAITING_PER_ADDRESS = 1024;
/** Bits of an address of IPv6 that name a network: its machines choose the rest. */
const NETWORK_BITS = 64n;

type Begin = () => void;
type Source = { readonly address: string; open: number; readonly waiting: Set<Begin> };

/**
 * Limits the connections of strangers: clients that have not proven yet to be nodes. Further connections wait for their turn,
 * so that many nodes behind one address get in after each other.
 */
export class Admission {
  readonly #sources = new Map<string, Source>();
  /** Sources with waiting connections, in the order of their turns. */
  readonly #queue = new Set<Source>();
  #open = 0;
  #waiting = 0;

  /**
   * Calls `begin` at once, or when it is the turn of this connection. Disposing the result makes room: the connection is over,
   * or is a node's. Undefined: too many connections wait.
   */
  enter(address: string, begin: Begin): Disposable | undefined {
    const source = this.#source(networkOf(address));
    if (source.waiting.size >= MAX_WAITING_PER_ADDRESS || this.#waiting >= MAX_WAITING) return undefined;
    source.waiting.add(begin);
    this.#waiting += 1;
    this.#queue.add(source);
    this.#beginNext();
    let isIn = true;
    return {
      [Symbol.dispose]: () => {
        if (!isIn) return;
        isIn = false;
        this.#leave(source, begin);
      },
    };
  }

  #source(address: string): Source {
    const known = this.#sources.get(address);
    if (known !== undefined) return known;
    const source = { address, open: 0, waiting: new Set<Begin>() };
    this.#sources.set(address, source);
    return source;
  }

  #leave(source: Source, begin: Begin): void {
    if (source.waiting.delete(begin)) {
      this.#waiting -= 1;
      if (source.waiting.size === 0) this.#queue.delete(source);
    } else {
      source.open -= 1;
      this.#open -= 1;
    }
    if (source.open === 0 && source.waiting.size === 0) this.#sources.delete(source.address);
    this.#beginNext();
  }

  #beginNext(): void {
    for (const source of this.#queue) {
      if (this.#open >= MAX_STRANGERS) return;
      if (source.open >= MAX_STRANGERS_PER_ADDRESS) continue;
      const begin = source.waiting.values().next().value!;
      source.waiting.delete(begin);
      this.#waiting -= 1;
      source.open += 1;
      this.#open += 1;
      this.#queue.delete(source);
      if (source.waiting.size > 0) this.#queue.add(source); // the next turn is another source's
      begin();
    }
  }
}

/** Connections are counted together by this: an address of IPv4, or a network of IPv6. */
function networkOf(address: string): string {
  const ip = parseIp(address.replace(/^::ffff:(?=[\d.]+$)/, ''));
  return ip?.family === 6 ? String(ip.value >> NETWORK_BITS) : address;
}
