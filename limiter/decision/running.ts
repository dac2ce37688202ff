/** How often the time of running requests is charged. */
const STEP_MS = 500;

/** `runningAt`: its place in the list, -1 while it is in none. */
type Running = { runningAt: number; chargeSoFar(): void };

/** A `WorkingTime`, or what a test has for it. */
export type Stopwatch = Readonly<{ now(): number; start(): void; stop(): void }>;

/**
 * Requests that are worked on: a long one is charged while it goes on, not only at its end.
 *
 * A list whose last entry takes the place of a removed one: a `Set` makes a new table every few entries, and each old
 * table refers to the next, so that none of them is collected with the young objects.
 */
export class RunningRequests implements Disposable {
  readonly time: Stopwatch;
  readonly #requests: Running[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(time: Stopwatch) {
    this.time = time;
  }

  add(request: Running): void {
    request.runningAt = this.#requests.push(request) - 1;
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#step(), STEP_MS).unref();
    this.time.start();
  }

  delete(request: Running): void {
    const at = request.runningAt;
    if (at < 0) return;
    request.runningAt = -1;
    const last = this.#requests.pop();
    if (last === undefined || last === request) return;
    this.#requests[at] = last;
    last.runningAt = at;
  }

  charge(): void {
    for (const request of this.#requests) request.chargeSoFar();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.time.stop();
  }

  #step(): void {
    if (this.#requests.length === 0) this[Symbol.dispose]();
    else this.charge();
  }
}
