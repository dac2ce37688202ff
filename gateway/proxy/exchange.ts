import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { Caller, Decision, ShownStatus } from '@gantry/limiter/types.ts';

import type { Gateway } from '../gateway.ts';
import type { Policy } from '../policy.ts';
import type { Target } from '../routes/path.ts';
import type { HeldBody } from './bodies/held-body.ts';
import type { RequestBody } from './bodies/request-body.ts';
import type { Connection } from './connections/connection.ts';

/** One request and its state. The policy is the one in force when the request arrived. */
export type Exchange = {
  readonly gateway: Gateway;
  readonly policy: Policy;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: Connection;
  /** The sender's address, from the connection or a trusted proxy. */
  readonly address: string;
  readonly expectsContinue: boolean;
  /** The socket and the bytes after the head, when the client asks for an upgrade. */
  readonly upgrade: Readonly<{ socket: Socket; head: Buffer }> | undefined;
  /** A proxy asks about this request: the answer is the decision. `endSeconds`: it reports the end within this time. */
  readonly question: Readonly<{ endSeconds: number | undefined }> | undefined;
  caller: Caller;
  target: Target;
  decision: Decision | undefined;
  /** The status that the headers show for a request that is not limited. */
  shown: ShownStatus | undefined;
  /** The part of the body that has arrived. */
  body: HeldBody | undefined;
  /** The body on its way to the upstream. */
  upload: RequestBody | undefined;
  /** It was sent to the upstream: its CPU time has begun. */
  isDispatched: boolean;
  /** The client has its answer, or is gone. */
  closed: boolean;
  /** Called when the client's connection is done, after the answer or in the middle of it. */
  whenClosed: { clientClosed(): void } | undefined;
};

/** Gives its place back. A request that was not sent to the upstream has used no CPU time. */
export function endDecision({ decision, isDispatched }: Exchange): void {
  decision?.end(isDispatched ? undefined : 0);
}
