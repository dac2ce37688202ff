import type { Container } from './store.ts';

/** Tells who waits for the end of a container's run, after that end is stored. */
export class Exits {
  readonly #waiting = new Map<string, PromiseWithResolvers<Container>>();

  /**
   * Resolves with the record as soon as the next end of a run is committed. Its state is `exited`, or `restarting` when
   * the restart policy goes on.
   *
   * Ask before you look at the state: both in one go, without an `await` between, miss nothing.
   */
  async recorded(id: string): Promise<Container> {
    const waiting = this.#waiting.get(id) ?? Promise.withResolvers<Container>();
    this.#waiting.set(id, waiting);
    return await waiting.promise;
  }

  /** The end is stored: wakes everyone. */
  announce(container: Container): void {
    const waiting = this.#waiting.get(container.id);
    this.#waiting.delete(container.id);
    waiting?.resolve(container);
  }
}
