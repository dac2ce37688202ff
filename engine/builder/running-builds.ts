/** The builds that clients can cancel, by the ids that they chose. */
export class RunningBuilds {
  readonly #canceling = new Map<string, AbortController>();

  /** Aborted by `cancel` until it is disposed. A later build with this id takes its place. */
  add(id: string): Disposable & { signal: AbortSignal } {
    const controller = new AbortController();
    if (id !== '') this.#canceling.set(id, controller);
    const remove = (): void => {
      if (this.#canceling.get(id) === controller) this.#canceling.delete(id);
    };
    return { signal: controller.signal, [Symbol.dispose]: remove };
  }

  /** Ignores an unknown id, as dockerd: the build may have ended meanwhile. */
  cancel(id: string): void {
    this.#canceling.get(id)?.abort();
  }
}
