import { Pool } from 'undici';

import type { Config } from '../config/schema.ts';
import { UpstreamSlots } from './upstream-slots.ts';

/** A server in the same data center answers in milliseconds; one that needs seconds has no room. */
const CONNECT_TIMEOUT_MS = 5000;

/** The pool of connections to the upstream. */
export type Upstream = Readonly<{ origin: URL; pool: Pool; slots: UpstreamSlots; timeouts: Config['timeouts'] }>;

export function openUpstream({ upstream, timeouts, sizes }: Config): Upstream {
  const origin = new URL(upstream);
  const pool = new Pool(origin, {
    connections: sizes.upstreamConnections,
    pipelining: 1, // a slow answer must not hold up others
    allowH2: false,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: timeouts.upstreamHeadersMs,
    bodyTimeout: timeouts.upstreamBodyMs,
    maxHeaderSize: 65_536,
  });
  const slots = new UpstreamSlots(sizes.upstreamConnections, timeouts.upstreamHeadersMs);
  return { origin, pool, slots, timeouts };
}

/** Whether a reload can keep the connections to the upstream. */
export function sameUpstream(one: Config, other: Config): boolean {
  return connectionSettings(one) === connectionSettings(other);
}

function connectionSettings({ upstream, timeouts, sizes }: Config): string {
  return JSON.stringify([upstream, timeouts, sizes.upstreamConnections]);
}
