import type { CallerState, LimitedCaller } from '@gantry/limiter/types.ts';

import type { NearestCaller } from './admin/nearest-callers.ts';
import type { TopCaller } from './admin/top-callers.ts';
import type { Config } from './config/schema.ts';
import type { Counts } from './metrics.ts';

/** The operator's questions. Each may reject: the store or a worker may be gone. */
export type Operator = {
  limited(): Promise<LimitedCaller[]>;
  caller(key: string): Promise<CallerState>;
  /** The primary limits that a caller's known credentials give it. */
  limitsOf(key: string): Promise<number[]>;
  /** Counts content that a caller has created elsewhere. */
  content(key: string, count: number): Promise<void>;
  /** Forgets what a caller has spent, and its ban, in all gateways that share the counts. */
  forgive(key: string): Promise<void>;
  counts(): Promise<Counts>;
  /** The callers with the most requests in the last hour. */
  top(): Promise<TopCaller[]>;
  /** The callers nearest to their primary limits. */
  nearest(): Promise<NearestCaller[]>;
};

/** A gateway as its operator sees it, of one process or of several. Disposing drains it. */
export type Service = AsyncDisposable & {
  /** The addresses for clients, with the port that the kernel chose for port 0. */
  readonly addresses: readonly string[];
  readonly operator: Operator;
  /** Puts other settings in force for the requests that come from then on; rejects, and changes nothing, when it cannot. */
  reload(config: Config): Promise<void>;
};
