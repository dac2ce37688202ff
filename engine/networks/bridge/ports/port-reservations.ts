import { readFileSync } from 'node:fs';

import { SystemError } from '../../../host/libc.ts';
import { reservePort, type ReservedPort } from '../../../host/network/sockets.ts';
import { isRootless } from '../../../host/rootless.ts';
import { EngineError } from '../../../lib/errors.ts';
import { isSix } from '../../../lib/notations/ip-address.ts';
import type { PublishedPort, WantedPort } from '../../endpoints/ports.ts';

const TAKEN = 'address already in use';
const ALLOCATED = 'port is already allocated';

/** The words of Go's net package, which clients know from dockerd. */
const BIND_REFUSALS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EADDRINUSE: TAKEN,
    EADDRNOTAVAIL: 'cannot assign requested address',
    EACCES: 'permission denied',
  }),
);

/**
 * The published ports of this machine, each reserved by a socket that gets no traffic.
 *
 * The packet rules translate before a packet reaches any socket. The socket keeps other programs from taking the port,
 * and detects a port that is already taken.
 */
export class PortReservations implements Disposable {
  /** Undefined: a process that an earlier daemon has started holds it. */
  readonly #held = new Map<string, ReservedPort | undefined>();
  readonly #ephemeral = ephemeralRange();
  #next = this.#ephemeral.first;

  /**
   * Reserves one host port for `wanted` on all of these addresses, in a range the first free one. Throws with dockerd's
   * message.
   */
  reserve({ range, ...wanted }: WantedPort, hostIps: readonly string[]): PublishedPort[] {
    const at = (hostPort: number): PublishedPort[] => hostIps.map((hostIp) => ({ ...wanted, hostIp, hostPort }));
    if (range === undefined) return at(this.#reserveAny(at));
    for (let hostPort = range.first; hostPort < range.last; hostPort += 1) {
      if (this.#tryReserve(at(hostPort)) === undefined) return at(hostPort);
    }
    const refusal = this.#tryReserve(at(range.last));
    if (refusal !== undefined) throw new EngineError('failed', refusal);
    return at(range.last);
  }

  /** Reserves a published port again after a restart. `false`: another program has it. */
  retake(port: PublishedPort): boolean {
    return this.#tryReserve([port]) === undefined;
  }

  /** Counts a port as reserved that another process of ours holds. */
  leaveToProxy(port: PublishedPort): void {
    this.#held.set(keyOf(port), undefined);
  }

  isHeld(port: PublishedPort): boolean {
    return this.#held.has(keyOf(port));
  }

  /** Reserves a port again that another process of ours held. `false`: another program has it. */
  takeBack(port: PublishedPort): boolean {
    this.#held.delete(keyOf(port));
    return this.retake(port);
  }

  /** The socket of a reserved port; undefined where another process of ours holds it. */
  socketOf(port: PublishedPort): number | undefined {
    return this.#held.get(keyOf(port))?.fd;
  }

  /** Frees a port; a free one is not an error. */
  release(port: PublishedPort): void {
    const key = keyOf(port);
    this.#held.get(key)?.[Symbol.dispose]();
    this.#held.delete(key);
  }

  [Symbol.dispose](): void {
    for (const socket of this.#held.values()) socket?.[Symbol.dispose]();
    this.#held.clear();
  }

  #reserveAny(at: (hostPort: number) => readonly PublishedPort[]): number {
    const { first, last } = this.#ephemeral;
    for (let tried = first; tried <= last; tried += 1) {
      const hostPort = this.#next;
      this.#next = hostPort >= last ? first : hostPort + 1;
      const refusal = this.#tryReserve(at(hostPort));
      if (refusal === undefined) return hostPort;
      if (!refusal.endsWith(TAKEN) && !refusal.endsWith(ALLOCATED)) throw new EngineError('failed', refusal);
    }
    throw new EngineError('failed', `all ports of the ephemeral range ${first}-${last} are allocated`);
  }

  /** All of them, or none: then the reason. */
  #tryReserve(ports: readonly PublishedPort[]): string | undefined {
    for (const [position, port] of ports.entries()) {
      const refusal = this.#tryOne(port);
      if (refusal === undefined) continue;
      for (const reserved of ports.slice(0, position)) this.release(reserved);
      return refusal;
    }
    return undefined;
  }

  #tryOne(port: PublishedPort): string | undefined {
    const { protocol, hostIp, hostPort } = port;
    const key = keyOf(port);
    const at = isSix(hostIp) ? `[${hostIp}]:${hostPort}` : `${hostIp}:${hostPort}`;
    // dockerd says the first without brackets.
    if (this.#held.has(key)) return `Bind for ${hostIp}:${hostPort} failed: ${ALLOCATED}`;
    try {
      this.#held.set(key, reservePort(protocol, hostIp, hostPort));
      return undefined;
    } catch (error) {
      if (!(error instanceof SystemError) || BIND_REFUSALS.get(error.code) === undefined) throw error;
      const verb = `listen ${protocol}${isSix(hostIp) ? 6 : 4}`;
      return `Error starting userland proxy: ${verb} ${at}: bind: ${BIND_REFUSALS.get(error.code)}${hintOf(error)}`;
    }
  }
}

/** The words of dockerd's rootless mode tell what to do. */
function hintOf({ code }: SystemError): string {
  if (!isRootless || code !== 'EACCES') return '';
  return '; as root, sysctl net.ipv4.ip_unprivileged_port_start=0 lets users open ports below 1024';
}

function keyOf({ protocol, hostIp, hostPort }: PublishedPort): string {
  return `${protocol}/${hostIp}:${hostPort}`;
}

function ephemeralRange(): { first: number; last: number } {
  const [first, last] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number);
  return { first: first ?? 32768, last: last ?? 60999 };
}
