/**
 * Those who wait for the end of the present run: attached clients, followed logs, `wait`.
 *
 * Other than `Exits.recorded` it does not wait through the restarts of a policy, because in docker these end with each
 * run.
 */
export class RunEnds {
  readonly #waiting = new Map<string, Set<(exitCode: number) => void>>();

  /** The exit code once the end of the run is committed; undefined when the signal came first. */
  async next(id: string, signal?: AbortSignal): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const leave = (): void => resolve(undefined);
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(resolve);
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted === true) leave();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', leave);
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    }
  }

  tell(id: string, exitCode: number): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    for (const resolve of waiting ?? []) resolve(exitCode);
  }
}
