import { closeSync, openSync } from 'node:fs';

import { hasCode } from '../../../lib/errors.ts';
import type { Member } from '../members/members.ts';
import { Balancing, virtualAddresses } from './balancing.ts';

/** A container in overlays: its namespace, held open, and its endpoints' networks. */
type Sandbox = { netns: number; networks: Map<string, string>; balancing: Balancing };

/** The namespaces of containers here that are in overlays, and the rules in them for the services there. */
export class OverlaySandboxes implements Disposable {
  readonly #byName = new Map<string, Sandbox>();

  /** A container joins a network. `netns` stays the caller's. */
  join(name: string, netns: number, endpoint: { id: string; network: string }): void {
    const sandbox = this.#byName.get(name) ?? {
      netns: openSync(`/proc/self/fd/${netns}`, 'r'),
      networks: new Map<string, string>(),
      balancing: new Balancing('container'),
    };
    sandbox.networks.set(endpoint.id, endpoint.network);
    this.#byName.set(name, sandbox);
  }

  /** Takes over a container that runs since before this daemon; one that has ended meanwhile is left out. */
  find(name: string, path: string, endpoint: { id: string; network: string }): void {
    try {
      const netns = openSync(path, 'r');
      this.join(name, netns, endpoint);
      closeSync(netns);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ESRCH')) throw error;
    }
  }

  /** An endpoint ends. Returns the name of its container; an unknown one is not an error. */
  leave(endpointId: string): string | undefined {
    for (const [name, sandbox] of this.#byName) {
      if (!sandbox.networks.delete(endpointId)) continue;
      if (sandbox.networks.size === 0) {
        this.#byName.delete(name);
        closeSync(sandbox.netns);
      }
      return name;
    }
    return undefined;
  }

  /** Writes the rules of the containers in a network. `services`: the members that they may know, by network. */
  balance(network: string, services: (network: string) => readonly Member[]): void {
    for (const [name, { netns, networks, balancing }] of this.#byName) {
      const own = new Set(networks.values());
      if (own.has(network)) balancing.write(netns, virtualAddresses([...own].flatMap(services), name));
    }
  }

  [Symbol.dispose](): void {
    for (const { netns } of this.#byName.values()) closeSync(netns);
    this.#byName.clear();
  }
}
