import type { Clock } from '../lib/clock.ts';
import { startHeld, type StartNeeds } from './start.ts';
import type { Container } from './store.ts';

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 60_000;
/** A run of this length was a success: the delay starts over. */
const STEADY_SECONDS = 10;

type Needs = StartNeeds & { clock: Clock; log: { warn(details: object, message: string): void } };

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

  /** Called when a container has ended. */
  ended(container: Container): void {
    const { id, state } = container;
    if (this.#disposed) return;
    if (state.status !== 'exited' || !wantsRestart(container, state.exitCode)) {
      this.#delaysMs.delete(id);
      return;
    }
    const ranSeconds = state.startedAt.until(state.finishedAt).total('seconds');
    const before = ranSeconds >= STEADY_SECONDS ? undefined : this.#delaysMs.get(id);
    const delayMs = before === undefined ? FIRST_DELAY_MS : Math.min(before * 2, LONGEST_DELAY_MS);
    this.#delaysMs.set(id, delayMs);
    this.#engine.containers.change(id, (current) => ({ ...current, state: { ...state, status: 'restarting' } }));
    this.#timers.set(
      id,
      this.#engine.clock.after(delayMs, () => this.#begin(id)),
    );
  }

  /** At the daemon's start: those that a user did not stop. */
  startAll(): void {
    for (const { id, state, hostConfig, stoppedByUser } of this.#engine.containers.all()) {
      const { Name } = hostConfig.RestartPolicy;
      const wanted = Name === 'always' || (Name === 'unless-stopped' && !stoppedByUser);
      if (state.status === 'restarting' || (state.status === 'exited' && wanted)) this.#begin(id);
    }
  }

  #begin(id: string): void {
    this.#timers.delete(id);
    const start = this.#again(id).finally(() => this.#starts.delete(start));
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
      await startHeld(this.#engine, id, { restartCount: container.restartCount + 1 });
    } catch (error) {
      this.#engine.log.warn({ err: error, container: id }, 'the restart policy could not start a container');
      const failed = this.#engine.containers.get(id);
      if (failed !== undefined) this.ended({ ...failed, restartCount: failed.restartCount + 1 });
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
