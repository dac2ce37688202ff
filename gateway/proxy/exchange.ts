import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { Caller, Category, Decision, LimitName, RateStatus } from '@gantry/limiter/types.ts';

import type { Gateway } from '../gateway.ts';
import type { Policy } from '../policy.ts';
import type { Target } from '../routes/path.ts';
import type { Connection } from './connections/connection.ts';
import type { RequestBody } from './request-body.ts';

/** What the headers of every answer say. */
export type ShownStatus = RateStatus & Readonly<{ resource: Category; shadowed?: readonly LimitName[] }>;

/** One request on its way through. The policy is the one in force when it came. */
export type Exchange = {
  readonly gateway: Gateway;
  readonly policy: Policy;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: Connection;
  /** Who sends it, from the connection or a trusted proxy. */
  readonly address: string;
  readonly expectsContinue: boolean;
  /** The connection and what was read beyond the head, when the client asks for another protocol. */
  readonly upgrade: Readonly<{ socket: Socket; head: Buffer }> | undefined;
  caller: Caller;
  target: Target;
  decision: Decision | undefined;
  /** What the headers say of a request that is not limited. */
  shown: ShownStatus | undefined;
  /** What of the request is still to come. */
  body: RequestBody | undefined;
  /** The client has its answer, or is gone. */
  closed: boolean;
  /** Told when the client's connection is done, after the whole answer or in the middle of it. */
  whenClosed: { clientClosed(): void } | undefined;
};
