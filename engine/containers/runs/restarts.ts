import { restartLater, startsWithDaemon } from './restart-policy.ts';
import { startHeld, type StartNeeds } from './start.ts';

/**
 * Starts containers by their restart policies. Disposing starts nothing more and waits for starts under way; the next
 * daemon starts those that were due.
 */
export class Restarts implements AsyncDisposable {
  readonly #engine: StartNeeds;
  readonly #underWay = new Set<Promise<void>>();

  constructor(engine: StartNeeds) {
    this.#engine = engine;
  }

  /** Starts due containers, at the daemon's start and from then on. */
  begin(): void {
    this.#engine.runs.onDue((id) => {
      if (this.#engine.containers.get(id)?.state.status === 'restarting') this.#start(id);
    });
    for (const { id } of this.#engine.containers.all()) this.startWithDaemon(id);
  }

  /** Starts one container with the daemon. */
  startWithDaemon(id: string): void {
    const container = this.#engine.containers.get(id);
    if (container !== undefined && startsWithDaemon(container)) this.#start(id);
  }

  #start(id: string): void {
    const { done } = this.#engine.background.run('start a container by its restart policy', { container: id }, () =>
      this.#again(id),
    );
    const start = done.then(() => void this.#underWay.delete(start));
    this.#underWay.add(start);
  }

  async #again(id: string): Promise<void> {
    const { containers, locks, runs } = this.#engine;
    const due = containers.get(id)?.state;
    using _lock = await locks.hold(id);
    const container = containers.get(id);
    // Another state: it was stopped, started or removed meanwhile.
    if (runs.areLast || container === undefined || container.state !== due) return;
    if (due.status !== 'restarting' && due.status !== 'exited') return;
    try {
      await startHeld(this.#engine, id, { byPolicy: true });
    } finally {
      // The claim could not be stored; the next attempt may have more space.
      const isStill = containers.get(id)?.state.status === 'restarting';
      if (isStill && !runs.of(id).awaitsRestart) restartLater(this.#engine, id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#engine.runs.endRestarts();
    await Promise.all(this.#underWay);
  }
}
