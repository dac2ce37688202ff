import { settlesWithin, sleep, type Clock } from '../clock.ts';

type Log = { error(details: object, message: string): void };
/** Logged beside name and error, such as `{ container: id }`. */
type About = Readonly<Record<string, string>>;
type Work = () => Promise<void> | void;

/** `done` resolves at the end of the work, good or bad; it never rejects. */
export type Task = Readonly<{ done: Promise<void> }>;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5000;
const LAST_SECONDS = 15;

/**
 * Runs work that nobody awaits. A failure is logged with the name of the work and never ends the daemon.
 *
 * Disposing starts nothing more and waits for running work. Pending retries are dropped: the next daemon's
 * reconciliation finds what they left.
 */
export class Background implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #underWay = new Map<Promise<void>, string>();
  readonly #ending = new AbortController();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Starts at once; one attempt. */
  run(name: string, about: About, work: Work): Task {
    return this.#track(name, async () => void (await this.#succeeds(name, about, work)));
  }

  /**
   * Starts at once and retries until it succeeds: for work that must not be lost, such as recording a container's exit.
   */
  untilDone(name: string, about: About, work: Work): Task {
    return this.#track(name, async () => {
      const failures = new Failures();
      for (let delayMs = FIRST_RETRY_MS; !(await this.#succeeds(name, about, work, failures)); delayMs *= 2) {
        await sleep(this.#clock, Math.min(delayMs, MAX_RETRY_MS), this.#ending.signal);
        if (this.#ending.signal.aborted) return;
      }
    });
  }

  /** Starts after a delay; one attempt. Disposing the result cancels it. */
  after(milliseconds: number, name: string, about: About, work: Work): Disposable {
    return this.#clock.after(milliseconds, () => void this.run(name, about, work));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await settlesWithin(Promise.all(this.#underWay.keys()), LAST_SECONDS, this.#clock);
    for (const name of this.#underWay.values())
      this.#log.error({ work: name }, 'the daemon ends while background work is running');
  }

  #track(name: string, work: () => Promise<void>): Task {
    if (this.#ending.signal.aborted) return { done: Promise.resolve() };
    const task = work().finally(() => this.#underWay.delete(task));
    this.#underWay.set(task, name);
    return { done: task };
  }

  async #succeeds(name: string, about: About, work: Work, failures = new Failures()): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (failures.isNews(error)) {
        const attempts = failures.count === 1 ? {} : { attempts: failures.count };
        this.#log.error({ err: error, work: name, ...attempts, ...about }, `background work failed: ${name}`);
      }
      return false;
    }
  }
}

/** The failures of one piece of work in a row. */
class Failures {
  count = 0;
  #reason: string | undefined;
  #nextToTell = 1;

  /** Counts a failure; the first, second, fourth, eighth … of the same reason is worth a line. */
  isNews(error: unknown): boolean {
    const reason = error instanceof Error ? error.message : String(error);
    this.count += 1;
    if (reason !== this.#reason) this.#nextToTell = this.count;
    this.#reason = reason;
    if (this.count < this.#nextToTell) return false;
    this.#nextToTell = this.count * 2;
    return true;
  }
}
