/** Requests that wait for a connection to the upstream at most; each takes about 9 KB. */
const MAX_WAITING = 5000;
/** How often slow clients are looked for while others wait. */
const CHECK_INTERVAL_MS = 1000;
/** A client that moves less, in so many checks in a row, is slow. */
const MIN_BYTES_PER_CHECK = 65_536;
const MAX_SLOW_CHECKS = 3;

/** A request that waits for a connection. `failed`: none was free in time, or too many wait. */
export type Waiter = Readonly<{ granted(waitedMs: number): void; failed(reason: 'late' | 'full'): void }>;

/** A transfer that its client may hold up. */
export type Transfer = {
  /** The upstream waits for the client, to send or to read. */
  readonly isHeldUp: boolean;
  /** Bytes that have moved on the client's connection, in either direction. */
  readonly movedBytes: number;
  /** Ends it, which frees its connection. */
  endSlow(): void;
};

type Waiting = { waiter: Waiter; sinceMs: number; timer: NodeJS.Timeout };
type Progress = { movedBytes: number; slowChecks: number };

/**
 * The connections to the upstream. When all are taken, requests wait for their turn, and callers take turns, so that a
 * busy one delays only itself. Slow clients keep their connections until others need them.
 */
export class UpstreamSlots {
  readonly #timeoutMs: number;
  #free: number;
  /** By caller; the caller whose turn was longest ago comes first. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  readonly #heldUp = new Map<Transfer, Progress>();
  #checks: NodeJS.Timeout | undefined;

  constructor(connections: number, timeoutMs: number) {
    this.#free = connections;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns false when all are taken. */
  take(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Waits for a connection. Returns a function that gives up. */
  wait(caller: string, waiter: Waiter): () => void {
    if (this.#waiting >= MAX_WAITING && !this.#makeRoom(caller)) {
      waiter.failed('full');
      return () => undefined;
    }
    const timer = setTimeout(() => this.#fail(caller, waiting, 'late'), this.#timeoutMs);
    const waiting: Waiting = { waiter, sinceMs: performance.now(), timer };
    const queue = this.#queues.get(caller);
    if (queue === undefined) this.#queues.set(caller, [waiting]);
    else queue.push(waiting);
    this.#waiting += 1;
    this.#checks ??= setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
    return () => void this.#remove(caller, waiting);
  }

  /** Gives a connection back: the next caller has it. */
  give(): void {
    for (const [caller, queue] of this.#queues) {
      const waiting = queue[0]!;
      this.#queues.delete(caller);
      this.#remove(caller, waiting, queue);
      if (queue.length > 0) this.#queues.set(caller, queue); // it comes last now
      waiting.waiter.granted(performance.now() - waiting.sinceMs);
      return;
    }
    this.#free += 1;
  }

  /** A transfer whose client has held it up once: it may be ended when others wait. */
  watch(transfer: Transfer): void {
    if (!this.#heldUp.has(transfer)) this.#heldUp.set(transfer, { movedBytes: transfer.movedBytes, slowChecks: 0 });
  }

  unwatch(transfer: Transfer): void {
    this.#heldUp.delete(transfer);
  }

  #remove(caller: string, waiting: Waiting, queue = this.#queues.get(caller)): boolean {
    const at = queue?.indexOf(waiting) ?? -1;
    if (queue === undefined || at < 0) return false;
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(caller);
    clearTimeout(waiting.timer);
    this.#waiting -= 1;
    if (this.#waiting > 0) return true;
    clearInterval(this.#checks);
    this.#checks = undefined;
    return true;
  }

  #fail(caller: string, waiting: Waiting, reason: 'late' | 'full'): void {
    if (this.#remove(caller, waiting)) waiting.waiter.failed(reason);
  }

  /** Turns away the newest request of the caller with most of them, unless that is this one. */
  #makeRoom(caller: string): boolean {
    let [busiest, longest]: [string, Waiting[]] = [caller, this.#queues.get(caller) ?? []];
    for (const [other, queue] of this.#queues) if (queue.length > longest.length) [busiest, longest] = [other, queue];
    if (busiest === caller) return false;
    this.#fail(busiest, longest.at(-1)!, 'full');
    return true;
  }

  /** Ends as many slow transfers as there are requests that wait. */
  #check(): void {
    let needed = this.#waiting;
    for (const [transfer, progress] of [...this.#heldUp]) {
      const { movedBytes } = transfer;
      const isSlow = transfer.isHeldUp && movedBytes - progress.movedBytes < MIN_BYTES_PER_CHECK;
      progress.movedBytes = movedBytes;
      progress.slowChecks = isSlow ? progress.slowChecks + 1 : 0;
      if (progress.slowChecks < MAX_SLOW_CHECKS || needed === 0) continue;
      needed -= 1;
      transfer.endSlow();
    }
  }
}
