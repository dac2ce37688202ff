import type { Database } from '../../db/database.ts';
import { transition } from '../state.ts';
import type { Container } from '../store.ts';
import { startHeld, type StartNeeds } from './start.ts';

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 60_000;
/** A run of this length was a success: the delay starts over. */
const STEADY_SECONDS = 10;

type Needs = StartNeeds & { db: Database };

/**
 * Starts ended containers again, as their policies say, each time after twice the delay. Disposed, it starts nothing
 * more, and waits for the starts that are under way; what was due is done by the next daemon.
 */
export class RestartPolicies implements AsyncDisposable {
  readonly #engine: Needs;
  readonly #delaysMs = new Map<string, number>();
  readonly #timers = new Map<string, Disposable>();
  readonly #starts = new Set<Promise<void>>();
  #disposed = false;

  constructor(engine: Needs) {
    this.#engine = engine;
  }

  /** Called in the transaction that stores the end of a run, or that a start by the policy has failed. */
  ended(container: Container, { ran }: { ran: boolean }): void {
    const { id, state } = container;
    const { containers, db } = this.#engine;
    if (this.#disposed) return;
    if (state.status !== 'exited' || !wantsRestart(container, state.exitCode)) {
      db.afterCommit(() => void this.#delaysMs.delete(id));
      return;
    }
    const ranSeconds = ran ? state.startedAt.until(state.finishedAt).total('seconds') : 0;
    containers.change(id, (current) => ({ ...current, state: transition(state, { ...state, status: 'restarting' }) }));
    db.afterCommit(() => this.#startLater(id, { isSteady: ranSeconds >= STEADY_SECONDS }));
  }

  /** At the daemon's start: those that a user did not stop. */
  startAll(): void {
    for (const { id } of this.#engine.containers.all()) this.startIfWanted(id);
  }

  /** The same for one alone. */
  startIfWanted(id: string): void {
    const container = this.#engine.containers.get(id);
    if (container === undefined) return;
    const { state, hostConfig, stoppedByUser } = container;
    const { Name } = hostConfig.RestartPolicy;
    const wanted = Name === 'always' || (Name === 'unless-stopped' && !stoppedByUser);
    if (state.status === 'restarting' || (state.status === 'exited' && wanted)) this.#begin(id);
  }

  #startLater(id: string, { isSteady }: { isSteady: boolean }): void {
    const before = isSteady ? undefined : this.#delaysMs.get(id);
    const delayMs = before === undefined ? FIRST_DELAY_MS : Math.min(before * 2, LONGEST_DELAY_MS);
    this.#delaysMs.set(id, delayMs);
    this.#timers.get(id)?.[Symbol.dispose]();
    this.#timers.set(
      id,
      this.#engine.clock.after(delayMs, () => this.#begin(id)),
    );
  }

  #begin(id: string): void {
    this.#timers.delete(id);
    const { done } = this.#engine.background.run('start a container by its restart policy', { container: id }, () =>
      this.#again(id),
    );
    const start = done.then(() => void this.#starts.delete(start));
    this.#starts.add(start);
  }

  async #again(id: string): Promise<void> {
    using _lock = await this.#engine.locks.hold(id);
    const container = this.#engine.containers.get(id);
    if (this.#disposed) return;
    if (container === undefined || (container.state.status !== 'restarting' && container.state.status !== 'exited'))
      return;
    if (container.state.status === 'exited' && this.#delaysMs.has(id) && container.stoppedByUser) return;
    try {
      await startHeld(this.#engine, id, { restartCount: container.restartCount + 1, byPolicy: true });
    } finally {
      // The claim itself could not be stored: the next attempt may find more space.
      const status = this.#engine.containers.get(id)?.state.status;
      if (status === 'restarting' && !this.#timers.has(id)) this.#startLater(id, { isSteady: false });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    for (const timer of this.#timers.values()) timer[Symbol.dispose]();
    await Promise.all(this.#starts);
  }
}

function wantsRestart({ hostConfig, stoppedByUser, restartCount }: Container, exitCode: number): boolean {
  const { Name, MaximumRetryCount } = hostConfig.RestartPolicy;
  if (stoppedByUser) return false;
  if (Name === 'always' || Name === 'unless-stopped') return true;
  return Name === 'on-failure' && exitCode !== 0 && (MaximumRetryCount === 0 || restartCount < MaximumRetryCount);
}
