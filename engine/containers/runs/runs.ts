import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { ShimLost, type Shim } from '../../runtime/shim/shim.ts';
import { exitCodeOf, isOver } from '../state.ts';
import type { ContainerStore } from '../store.ts';

type Needs = Pick<Engine, 'clock'> & { containers: Pick<ContainerStore, 'get'> };

/** A client that has attached before the start. */
type WaitingClient = Readonly<{
  /** Resolves when the shim has accepted the client. */
  connect: (shim: Shim) => Promise<void>;
  /** The container was removed, so no start follows. */
  cancel: () => void;
}>;

/** A copy of the container's files under way. */
type Copy = Readonly<{ stop: () => void; ended: Promise<void> }>;

/** The inspect of a container that was removed while a client waited for it. */
const REMOVED_CODE = 137;

/** The runs of all containers, each by its container's id. */
export class Runs {
  readonly #needs: Needs;
  readonly #byId = new Map<string, Run>();
  #due: (id: string) => void = () => undefined;
  #over: (id: string) => void = () => undefined;
  #areLast = false;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  of(id: string): Run {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const run = new Run(id, this.#needs, { due: () => this.#due(id), over: () => this.#over(id) });
    this.#byId.set(id, run);
    return run;
  }

  /** To be called when the container and the remains of its last run are removed. */
  forget(id: string): void {
    this.#byId.delete(id);
  }

  /** Calls `listener` with the id of each container whose delay before the next run is over. */
  onDue(listener: (id: string) => void): void {
    this.#due = listener;
  }

  /** Calls `listener` with the id of each container that has stopped, and is not started again at once. */
  onOver(listener: (id: string) => void): void {
    this.#over = listener;
  }

  /** From now on no run is restarted, and no pending delay starts one. */
  endRestarts(): void {
    this.#areLast = true;
    for (const run of this.#byId.values()) run.cancelRestart();
  }

  /** Whether the daemon is ending, so that nothing is restarted. */
  get areLast(): boolean {
    return this.#areLast;
  }
}

/**
 * The state of a container's run that is not in its record: the shim, the clients that wait for its start or its end,
 * the timer of its next start, and its clean-up. The object stays the same from one run to the next.
 */
export class Run {
  readonly #id: string;
  readonly #needs: Needs;
  readonly #tell: Readonly<{ due: () => void; over: () => void }>;
  #shim: Shim | undefined;
  #startingShim: Shim | undefined;
  #clients = new Set<WaitingClient>();
  readonly #copies = new Set<Copy>();
  readonly #ends = new Set<(exitCode: number | undefined) => void>();
  /** Like `#ends`, but a start that a user asked for and that failed is no exit. */
  readonly #exits = new Set<(exitCode: number | undefined) => void>();
  readonly #removals = new Set<(exitCode: number | undefined) => void>();
  /** The restarts under way, after which it may not run for a moment. */
  #bridged = 0;
  #settled: PromiseWithResolvers<void> | undefined;
  #cleaned: Promise<void> | undefined;
  #restart: Disposable | undefined;
  /** Delay of the last restart; undefined after a run that was a success. */
  restartDelayMs: number | undefined;
  /** The archives that clients have put into its files. */
  writes = 0;
  /** The commits under way that share a pause. */
  commits = 0;
  /** Whether the container's state is still unknown after the daemon's start. */
  isUnclear = false;

  constructor(id: string, needs: Needs, tell: Readonly<{ due: () => void; over: () => void }>) {
    this.#id = id;
    this.#needs = needs;
    this.#tell = tell;
  }

  /** Resolves when the last run's remains are gone: the runtime refuses an id that it still has. */
  async cleaned(): Promise<void> {
    await this.#cleaned;
  }

  /** For the next start; disposing takes the client back. */
  addClient(client: WaitingClient): Disposable {
    const waiting = this.#clients;
    waiting.add(client);
    return { [Symbol.dispose]: () => void waiting.delete(client) };
  }

  /**
   * Connects the waiting clients before the first byte can be written. Later clients connect by themselves; the result
   * is to be disposed at the end of the start, successful or not.
   */
  async connectClients(shim: Shim): Promise<Disposable> {
    const waiting = [...this.#clients];
    this.#clients = new Set();
    this.#startingShim = shim;
    await Promise.all(waiting.map(async ({ connect }) => await connect(shim)));
    return { [Symbol.dispose]: () => (this.#startingShim = undefined) };
  }

  cancelClients(): void {
    for (const { cancel } of this.#clients) cancel();
  }

  /** Its files stay until the copy is disposed. A removal calls `stop`. */
  addCopy(stop: () => void): Disposable {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const copy = { stop, ended };
    this.#copies.add(copy);
    return {
      [Symbol.dispose]: () => {
        this.#copies.delete(copy);
        resolve();
      },
    };
  }

  /** Stops all copies, and resolves when they have ended. */
  async endCopies(): Promise<void> {
    for (const { stop } of this.#copies) stop();
    await Promise.all([...this.#copies].map(async ({ ended }) => await ended));
  }

  /** To be called when the process runs, or was found running at the daemon's start. */
  begin(shim: Shim): void {
    this.#shim = shim;
    this.isUnclear = false;
  }

  /** Shim of the running process. */
  get shim(): Shim | undefined {
    return this.#shim;
  }

  /** Shim of the running process, or that of a start which connects clients already. */
  get shimForClients(): Shim | undefined {
    return this.#shim ?? this.#startingShim;
  }

  /** A process that has ended, or whose shim has, needs no signal: its end is about to be recorded. */
  async signal(signal: number): Promise<void> {
    try {
      await this.#shim?.signal(signal);
    } catch (error) {
      const hasEnded = error instanceof ShimLost || (error instanceof EngineError && error.kind === 'conflict');
      if (!hasEnded) throw error;
    }
  }

  /**
   * The exit code once the end of the run is committed, also when a restart policy begins the next one; undefined when
   * the signal aborts first.
   */
  async nextEnd(signal?: AbortSignal): Promise<number | undefined> {
    return await listen(this.#ends, signal);
  }

  /** Like `nextEnd`, but stays over a start that fails, as in dockerd; a removal ends it with the last exit code. */
  async nextExit(signal?: AbortSignal): Promise<number | undefined> {
    return await listen(this.#exits, signal);
  }

  /** The exit code of the last run once the removal is committed; undefined when the signal aborts first. */
  async removal(signal?: AbortSignal): Promise<number | undefined> {
    return await listen(this.#removals, signal);
  }

  /** Keeps an ended container from being removed by `AutoRemove` until the result is disposed. */
  bridge(): Disposable {
    this.#bridged += 1;
    return {
      [Symbol.dispose]: () => {
        this.#bridged -= 1;
        this.#tellOver();
      },
    };
  }

  /** Resolves when the container has stopped and will not be restarted by its policy; that is committed then. */
  async settled(): Promise<void> {
    if (this.#isOver()) return;
    this.#settled ??= Promise.withResolvers();
    await this.#settled.promise;
  }

  /** The end is committed: wakes its listeners. */
  tellEnd(exitCode: number): void {
    wake(this.#exits, exitCode);
    this.tellFailedStart(exitCode);
  }

  /** A start by a user has failed, and that is committed. */
  tellFailedStart(exitCode: number): void {
    wake(this.#ends, exitCode);
    this.#settle();
  }

  /** Like `tellEnd`, without an end of a process, such as between two runs of a restart policy. */
  tellSettled(): void {
    if (!this.#isOver()) return;
    wake(this.#exits, this.#lastCode());
    this.#settle();
  }

  #settle(): void {
    if (!this.#isOver()) return;
    const { state } = this.#needs.containers.get(this.#id) ?? {};
    wake(this.#ends, this.#lastCode());
    this.#settled?.resolve();
    this.#settled = undefined;
    if (state !== undefined) this.#tellOver();
  }

  /** The removal is committed: wakes its listeners, and those for the end of the wait for a next run. */
  tellRemoved(exitCode: number): void {
    wake(this.#removals, exitCode);
    wake(this.#exits, exitCode);
    this.tellSettled();
  }

  /** The process has ended; `cleaned` resolves after the runtime's clean-up, and never rejects. */
  leave(cleaned: Promise<void>): void {
    this.#shim = undefined;
    const tracked = cleaned.finally(() => {
      if (this.#cleaned === tracked) this.#cleaned = undefined;
    });
    this.#cleaned = tracked;
  }

  /** Whether a delay before the next run is under way. */
  get awaitsRestart(): boolean {
    return this.#restart !== undefined;
  }

  /** A user has stopped or started it: nothing is due, and the next delay is the first one again. */
  forgetRestarts(): void {
    this.cancelRestart();
    this.restartDelayMs = undefined;
  }

  cancelRestart(): void {
    this.#restart?.[Symbol.dispose]();
    this.#restart = undefined;
  }

  restartIn(delayMs: number): void {
    this.cancelRestart();
    this.restartDelayMs = delayMs;
    this.#restart = this.#needs.clock.after(delayMs, () => {
      this.#restart = undefined;
      this.#tell.due();
    });
  }

  #tellOver(): void {
    if (this.#bridged === 0 && this.#isOver()) this.#tell.over();
  }

  #lastCode(): number {
    const state = this.#needs.containers.get(this.#id)?.state;
    return state === undefined ? REMOVED_CODE : exitCodeOf(state);
  }

  #isOver(): boolean {
    const state = this.#needs.containers.get(this.#id)?.state;
    return state === undefined || isOver(state);
  }
}

function wake(listeners: Set<(exitCode: number | undefined) => void>, exitCode: number): void {
  for (const resolve of listeners) resolve(exitCode);
  listeners.clear();
}

/** The next exit code for the listeners; undefined when the signal aborts first. */
async function listen(
  listeners: Set<(exitCode: number | undefined) => void>,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const leave = (): void => resolve(undefined);
  listeners.add(resolve);
  signal?.addEventListener('abort', leave, { once: true });
  if (signal?.aborted === true) leave();
  try {
    return await promise;
  } finally {
    signal?.removeEventListener('abort', leave);
    listeners.delete(resolve);
  }
}
