import { newId } from '../lib/ids.ts';
import { NO_CACHES, type Caches } from './caches/cache-options.ts';
import type { Built } from './frontend/build.ts';
import type { Result } from './messages/bridge.ts';
import { StatusQueue } from './progress/status-queue.ts';
import type { Received } from './wire/message.ts';
import { GrpcError, StatusCode } from './wire/status.ts';

type Returned = NonNullable<Received<typeof Result>>;

/** One build of a client, from its `Control.Solve` to the export of its result. */
export class Solve {
  readonly sessionId: string;
  /** Rights that the client has asked for, such as `network.host`. */
  readonly entitlements: readonly string[];
  readonly queue = new StatusQueue();
  /** Options of the frontend, for the history. */
  attributes: ReadonlyMap<string, string> = new Map();
  caches: Caches = NO_CACHES;
  /** Aborted when it is over. */
  readonly over: AbortSignal;
  readonly #over = new AbortController();
  readonly #results = new Map<string, Built>();
  readonly #returned = Promise.withResolvers<Returned | undefined>();
  /** The failure of the frontend, which the client returns in other words. */
  #failure: GrpcError | undefined;

  /** `signal`: aborted when the client has left. */
  constructor(sessionId: string, signal: AbortSignal, entitlements: readonly string[] = []) {
    this.sessionId = sessionId;
    this.entitlements = entitlements;
    this.over = AbortSignal.any([signal, this.#over.signal]);
    this.over.addEventListener('abort', () => this.#returned.reject(canceled()), { once: true });
    this.#returned.promise.catch(() => undefined); // a build without a client's frontend awaits none
  }

  /** Returns the name under which the client returns the result. */
  add(built: Built): string {
    const ref = newId();
    this.#results.set(ref, built);
    return ref;
  }

  built(ref: string): Built {
    const built = this.#results.get(ref);
    if (built === undefined)
      throw new GrpcError(StatusCode.NOT_FOUND, `the build has no result ${JSON.stringify(ref)}`);
    return built;
  }

  fail(failure: GrpcError): void {
    this.#failure ??= failure;
  }

  /** The client's frontend has ended; `failure`: without a result. */
  return(result: Returned | undefined, failure: GrpcError | undefined): void {
    if (failure === undefined) this.#returned.resolve(result);
    else this.#returned.reject(this.#failure ?? failure);
  }

  /**
   * The results that the client wants to have exported: none, one, or one for each platform, in the order in which they
   * were built: clients return them in no order.
   */
  async results(): Promise<readonly Built[]> {
    const returned = await this.#returned.promise;
    const refs = [returned?.ref, ...(returned?.refs?.refs.values() ?? [])].flatMap((each) => each?.id || []);
    const wanted = new Set(refs.map((ref) => this.built(ref)));
    return [...this.#results.values()].filter((built) => wanted.has(built));
  }

  end(now: Temporal.Instant): void {
    this.#over.abort();
    this.queue.end(now);
  }
}

function canceled(): GrpcError {
  return new GrpcError(StatusCode.CANCELLED, 'the build was canceled');
}
