import type { Image } from '../images/store.ts';
import { newId } from '../lib/ids.ts';
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
  /** Aborted when it is over. */
  readonly over: AbortSignal;
  readonly #over = new AbortController();
  readonly #images = new Map<string, Image>();
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
  add(image: Image): string {
    const ref = newId();
    this.#images.set(ref, image);
    return ref;
  }

  image(ref: string): Image {
    const image = this.#images.get(ref);
    if (image === undefined)
      throw new GrpcError(StatusCode.NOT_FOUND, `the build has no result ${JSON.stringify(ref)}`);
    return image;
  }

  fail(failure: GrpcError): void {
    this.#failure ??= failure;
  }

  /** The client's frontend has ended; `failure`: without a result. */
  return(result: Returned | undefined, failure: GrpcError | undefined): void {
    if (failure === undefined) this.#returned.resolve(result);
    else this.#returned.reject(this.#failure ?? failure);
  }

  /** The result that the client wants to have exported; undefined: none. */
  async result(): Promise<Image | undefined> {
    const returned = await this.#returned.promise;
    const refs = [returned?.ref, ...(returned?.refs?.refs.values() ?? [])].flatMap((each) => each?.id || []);
    if (refs.length > 1) throw new GrpcError(StatusCode.UNIMPLEMENTED, 'several results are not implemented yet');
    return refs.length === 0 ? undefined : this.image(refs[0]!);
  }

  end(): void {
    this.#over.abort();
    this.queue.end();
  }
}

function canceled(): GrpcError {
  return new GrpcError(StatusCode.CANCELLED, 'the build was canceled');
}
