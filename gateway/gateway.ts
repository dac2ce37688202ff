import type { Socket } from 'node:net';

import type { RateLimiter } from '@gantry/limiter/limiter.ts';

import type { NearestCallers } from './admin/nearest-callers.ts';
import type { TopCallers } from './admin/top-callers.ts';
import type { OpenDecisions } from './decisions/open-decisions.ts';
import type { GatewayLog } from './log.ts';
import type { Counts } from './metrics.ts';
import type { Policy } from './policy.ts';
import type { HeldBytes } from './proxy/bodies/held-body.ts';
import type { Connection } from './proxy/connections/connection.ts';
import type { ConnectionsByAddress } from './proxy/connections/connections-by-address.ts';
import type { LearnedOrigins } from './proxy/headers/cors.ts';
import type { Upstream } from './proxy/upstream.ts';

/** A proxy's report that a request has ended: of the seconds that the upstream took, where it knows them. */
export type DecisionEnd = Readonly<{ token: string; seconds: number | undefined }>;

/** The parts of a running gateway. */
export type Gateway = {
  readonly limiter: RateLimiter;
  readonly counts: Counts;
  readonly log: GatewayLog;
  /** Connections of clients, upgraded ones included. */
  readonly connections: Map<Socket, Connection>;
  /** TLS connections whose handshake is not complete; they are in no other set. */
  readonly handshakes: Set<Socket>;
  readonly addresses: ConnectionsByAddress;
  policy: Policy;
  upstream: Upstream;
  /** The gateway is shutting down: connections are closed after their answer. */
  draining: boolean;
  readonly topCallers: TopCallers;
  readonly nearestCallers: NearestCallers;
  readonly origins: LearnedOrigins;
  /** Bodies of requests and answers that wait for slow clients. */
  readonly heldBytes: HeldBytes;
  /** Bodies that are read to tell a query from a mutation. */
  readonly graphqlBytes: HeldBytes;
  readonly openDecisions: OpenDecisions;
  /** Ends a request about which another worker has decided. Undefined: there is none. */
  readonly endElsewhere: ((end: DecisionEnd) => void) | undefined;
  /** Requests that wait for earlier ones of their connections. */
  pipelined: number;
};
