/** No turn came in time. */
export class NoTurn extends Error {
  override readonly name = 'NoTurn';
}

export type TurnLimits = Readonly<{
  /** Under way at once, in all and of each source. */
  concurrency: number;
  perSource: number;
  /** Questions a second of a source that is slowed down. */
  slowPerSecond: number;
  /** The longest wait for a turn. */
  waitMs: number;
}>;

/** A request for a turn. `urgent` goes before all others; `slow` is for a source that has used up its limit. */
export type Pace = 'urgent' | 'normal' | 'slow';

type Source = { waiting: Waiter[]; underWay: number; slowAt: number };
type Waiter = { source: Source; pace: Pace; start: () => void };

/** How many of one source, and of all, wait at most: more would wait in vain. Urgent ones are counted by themselves. */
const MAX_PER_SOURCE = 100;
const MAX_WAITING = 10_000;

/**
 * A fair queue: the sources take turns, so that a busy one delays only itself. A request that waits too long is rejected.
 */
export class Turns {
  readonly #limits: TurnLimits;
  /** The source whose turn was longest ago comes first. */
  readonly #sources = new Map<string, Source>();
  readonly #urgent: Waiter[] = [];
  #underWay = 0;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Waits for a turn; disposing the result ends it. Rejects with `NoTurn`. */
  async take(name: string, pace: Pace): Promise<Disposable> {
    const source = this.#sources.get(name) ?? { waiting: [], underWay: 0, slowAt: 0 };
    this.#sources.set(name, source);
    const isUrgent = pace === 'urgent';
    const queue = isUrgent ? this.#urgent : source.waiting;
    const isFull = isUrgent
      ? queue.length >= MAX_WAITING
      : queue.length >= MAX_PER_SOURCE || this.#waiting - this.#urgent.length >= MAX_WAITING;
    if (isFull) throw new NoTurn('too many questions wait');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { source, pace, start: resolve };
    const timer = setTimeout(() => {
      queue.splice(queue.indexOf(waiter), 1);
      this.#waiting -= 1;
      reject(new NoTurn('a question has waited too long for its turn'));
    }, this.#limits.waitMs);
    queue.push(waiter);
    this.#waiting += 1;
    this.#startNext();
    await promise;
    clearTimeout(timer);
    return {
      [Symbol.dispose]: () => {
        this.#underWay -= 1;
        source.underWay -= 1;
        this.#startNext();
      },
    };
  }

  #startNext(): void {
    while (this.#underWay < this.#limits.concurrency && this.#urgent.length > 0) this.#start(this.#urgent);
    let soonest = Infinity;
    for (const [name, source] of this.#sources) {
      if (this.#underWay >= this.#limits.concurrency) return;
      const inMs = this.#readyIn(source);
      if (inMs > 0) soonest = Math.min(soonest, inMs);
      if (inMs === 0) {
        this.#start(source.waiting);
        this.#sources.delete(name); // so that it comes last: this loop meets it again when the others had their turn
        this.#sources.set(name, source);
      } else if (source.waiting.length === 0 && source.underWay === 0 && source.slowAt <= performance.now()) {
        this.#sources.delete(name);
      }
    }
    if (soonest === Infinity || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#startNext();
    }, soonest).unref();
  }

  /** Milliseconds until the first waiting request may start. Infinity: not before another one ends. */
  #readyIn({ waiting, underWay, slowAt }: Source): number {
    const [first] = waiting;
    if (first === undefined || underWay >= this.#limits.perSource) return Infinity;
    return first.pace === 'slow' ? Math.max(0, slowAt - performance.now()) : 0;
  }

  #start(queue: Waiter[]): void {
    const waiter = queue.shift();
    if (waiter === undefined) return;
    this.#waiting -= 1;
    this.#underWay += 1;
    waiter.source.underWay += 1;
    if (waiter.pace === 'slow') waiter.source.slowAt = performance.now() + 1000 / this.#limits.slowPerSecond;
    waiter.start();
  }
}
