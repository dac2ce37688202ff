/** How often the time of requests is charged that go on. */
const STEP_MS = 500;

type Running = { chargeSoFar(): void };

/** Requests that are worked on: a long one is charged while it goes on, and not only when it is too late. */
export class RunningRequests implements Disposable {
  readonly #requests = new Set<Running>();
  #timer: NodeJS.Timeout | undefined;

  add(request: Running): void {
    this.#requests.add(request);
    this.#timer ??= setInterval(() => this.#step(), STEP_MS).unref();
  }

  delete(request: Running): void {
    this.#requests.delete(request);
  }

  charge(): void {
    for (const request of this.#requests) request.chargeSoFar();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #step(): void {
    if (this.#requests.size === 0) this[Symbol.dispose]();
    else this.charge();
  }
}
