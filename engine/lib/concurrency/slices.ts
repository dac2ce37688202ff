import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 10;

/** Long work on the event loop: after 10 ms of it, others have their turn. */
export class Slices {
  readonly #signal: AbortSignal | undefined;
  #end = performance.now() + SLICE_MS;

  /** `signal`: ends the work at its next pause. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** Whether the work must `pause`. */
  get isOver(): boolean {
    return performance.now() >= this.#end;
  }

  async pause(): Promise<void> {
    await setImmediate();
    this.#signal?.throwIfAborted();
    this.#end = performance.now() + SLICE_MS;
  }
}

/** Runs work that yields between its steps, in slices; returns its result. */
export async function runInSlices<T>(work: Iterator<unknown, T>, signal?: AbortSignal): Promise<T> {
  const slices = new Slices(signal);
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (slices.isOver) await slices.pause();
  }
}

/** Filters a list in slices: a client's filter may cost much for each entry. */
export async function filterInSlices<T>(list: readonly T[], matches: (entry: T) => boolean): Promise<T[]> {
  const slices = new Slices();
  const found: T[] = [];
  for (const entry of list) {
    if (matches(entry)) found.push(entry);
    if (slices.isOver) await slices.pause();
  }
  return found;
}

/** Runs such work without a pause, where it is short or the thread is its own. */
export function runAtOnce<T>(work: Iterator<unknown, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
