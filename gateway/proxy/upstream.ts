import type { Config } from '../config/schema.ts';
import { upstreamAddresses } from '../config/upstream-address.ts';
import { UpstreamSlots } from './upstream-slots.ts';
import { chooseServer, UpstreamServer } from './upstreams/upstream-server.ts';

/** A server in the same data center answers in milliseconds; one that needs seconds has no room. */
const CONNECT_TIMEOUT_MS = 5000;

/** The servers behind, and the connections to them. */
export class Upstream implements AsyncDisposable {
  readonly slots: UpstreamSlots;
  readonly timeouts: Config['timeouts'];
  readonly #servers: readonly UpstreamServer[];

  constructor({ upstream, upstreamHealth, timeouts, sizes }: Config) {
    const options = {
      connections: sizes.upstreamConnections,
      pipelining: 1, // a slow answer must not hold up others
      allowH2: false,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      headersTimeout: timeouts.upstreamHeadersMs,
      bodyTimeout: timeouts.upstreamHeadersMs,
      maxHeaderSize: 65_536,
    };
    this.#servers = upstreamAddresses(upstream).map((address) => new UpstreamServer(address, options, upstreamHealth));
    this.slots = new UpstreamSlots(sizes.upstreamConnections, timeouts.upstreamHeadersMs);
    this.timeouts = timeouts;
  }

  /** The server for the next request, none of those that were tried; undefined: there is none. */
  choose(tried?: readonly UpstreamServer[]): UpstreamServer | undefined {
    const [first] = this.#servers;
    return this.#servers.length === 1 && tried === undefined && first?.isHealthy === true
      ? first
      : chooseServer(this.#servers, tried);
  }

  /** Requests under way end first. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map(async (server) => await server.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map(async (server) => await server[Symbol.asyncDispose]()));
  }
}

/** Whether a reload can keep the connections to the upstream. */
export function sameUpstream(one: Config, other: Config): boolean {
  return connectionSettings(one) === connectionSettings(other);
}

function connectionSettings({ upstream, upstreamHealth, timeouts, sizes }: Config): string {
  return JSON.stringify([upstream, upstreamHealth, timeouts, sizes.upstreamConnections]);
}
