import type { ServerResponse } from 'node:http';

import { settlesWithin, type Clock } from '../../lib/clock.ts';

/** The event of a response whose connection a route has taken over: from then on it is a stream, not a request. */
export const TAKEN_OVER = Symbol('taken over');

/** Requests without an answer yet: a daemon that ends answers them first. */
export class PendingRequests {
  readonly #responses = new Set<ServerResponse>();
  readonly #clock: Clock;
  #answered: PromiseWithResolvers<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(response: ServerResponse): void {
    const left = (): void => this.#leave(response);
    this.#responses.add(response);
    response.once('close', left).once(TAKEN_OVER, left);
  }

  /** Resolves when all of them are answered, or when the time is over. */
  async answered(seconds: number): Promise<void> {
    if (this.#responses.size === 0) return;
    this.#answered ??= Promise.withResolvers<void>();
    await settlesWithin(this.#answered.promise, seconds, this.#clock);
  }

  #leave(response: ServerResponse): void {
    this.#responses.delete(response);
    if (this.#responses.size > 0) return;
    this.#answered?.resolve();
    this.#answered = undefined;
  }
}
