import { timeOf } from '../messages/common.ts';
import type { StatusResponse } from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';

type Status = Sent<typeof StatusResponse>;
type Vertex = NonNullable<Status['vertexes']>[number];

/** Clients show it as canceled, not as a failure. */
export const CANCELED = 'context canceled';
/** Bytes that wait for a client; a process waits above it. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Bytes that are kept while no client reads; the oldest go. */
const MAX_KEPT_BYTES = 1024 * 1024;
/** Memory of a status besides its texts. */
const STATUS_BYTES = 512;

/** The progress of a build on its way to the clients that follow it. */
export class StatusQueue {
  readonly #vertexes = new Map<string, Vertex>();
  readonly #readers = new Set<Waiting>();
  /** For the first reader, which may come late. */
  readonly #kept = new Waiting();
  #isOver = false;
  #observer: ((status: Status) => void) | undefined;

  /** Tells all progress from now on. */
  observe(observer: (status: Status) => void): void {
    this.#observer = observer;
  }

  push(status: Status, textBytes = 0): void {
    const bytes = textBytes + STATUS_BYTES;
    this.#observer?.(status);
    for (const vertex of status.vertexes ?? []) this.#vertexes.set(vertex.digest!, vertex);
    if (this.#readers.size === 0) {
      this.#kept.add(status, bytes);
      this.#kept.dropAbove(MAX_KEPT_BYTES);
    }
    const isPassing = status.statuses?.every(({ completed }) => completed === undefined) ?? false;
    for (const reader of this.#readers) {
      if (isPassing && reader.isAbove(MAX_WAITING_BYTES)) continue; // a later one says more
      reader.add(status, bytes);
    }
  }

  /** Waits until all readers have taken what waits beyond the limit. */
  async taken(): Promise<void> {
    await Promise.all([...this.#readers].map(async (reader) => await reader.below(MAX_WAITING_BYTES)));
  }

  /** Vertexes that have begun and not ended are canceled: their steps end behind the answer. */
  end(now: Temporal.Instant): void {
    const left = [...this.#vertexes.values()].filter(
      (each) => each.started !== undefined && each.completed === undefined,
    );
    if (left.length > 0)
      this.push({ vertexes: left.map((each) => ({ ...each, completed: timeOf(now), error: CANCELED })) });
    this.#isOver = true;
    for (const reader of this.#readers) reader.wake();
  }

  /** From the beginning of the build to its end. */
  async *read(signal: AbortSignal): AsyncGenerator<Status> {
    const reader = new Waiting();
    for (const [status, bytes] of this.#kept.take()) reader.add(status, bytes);
    reader.add({ vertexes: [...this.#vertexes.values()] }, STATUS_BYTES);
    this.#readers.add(reader);
    const wake = (): void => reader.wake();
    signal.addEventListener('abort', wake, { once: true });
    try {
      while (!signal.aborted) {
        const statuses = reader.take().map(([status]) => status);
        if (statuses.length > 0) yield merged(statuses);
        else if (this.#isOver) return;
        else await reader.more();
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#readers.delete(reader);
      reader.wake();
    }
  }
}

class Waiting {
  #statuses: [Status, number][] = [];
  #bytes = 0;
  #change = Promise.withResolvers<void>();
  #isGone = false;

  add(status: Status, bytes: number): void {
    this.#statuses.push([status, bytes]);
    this.#bytes += bytes;
    this.#changed();
  }

  take(): [Status, number][] {
    const all = this.#statuses;
    this.#statuses = [];
    this.#bytes = 0;
    if (all.length > 0) this.#changed();
    return all;
  }

  dropAbove(limit: number): void {
    while (this.#bytes > limit) this.#bytes -= this.#statuses.shift()![1];
  }

  isAbove(limit: number): boolean {
    return this.#bytes > limit;
  }

  async more(): Promise<void> {
    if (this.#statuses.length === 0) await this.#change.promise;
  }

  async below(limit: number): Promise<void> {
    while (this.#bytes > limit && !this.#isGone) await this.#change.promise;
  }

  wake(): void {
    this.#isGone = true;
    this.#changed();
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

function merged(statuses: readonly Status[]): Status {
  return {
    vertexes: statuses.flatMap(({ vertexes = [] }) => vertexes),
    statuses: statuses.flatMap((each) => each.statuses ?? []),
    logs: statuses.flatMap(({ logs = [] }) => logs),
    warnings: statuses.flatMap(({ warnings = [] }) => warnings),
  };
}
