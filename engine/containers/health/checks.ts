import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { newId } from '../../lib/ids.ts';
import { count } from '../../lib/measures.ts';
import { goDurationText } from '../../lib/notations/go-duration.ts';
import { PROBE_FILE, type ProbeEnd } from '../../runtime/probe.ts';
import { ShimLost, type Shim } from '../../runtime/shim/shim.ts';
import { StartFailed } from '../../runtime/start-failure.ts';
import { emitContainer } from '../container-events.ts';
import { enteredProcess, type EnteredNeeds } from '../runs/entered-process.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';
import { checkOf, type Check } from './check.ts';
import { afterResult, atStart, markUnhealthy } from './outcome.ts';
import type { CheckResult, Health, HealthStore } from './store.ts';

export type HealthNeeds = EnteredNeeds &
  Pick<Engine, 'background' | 'clock' | 'db' | 'events' | 'runs'> & {
    healthStore: HealthStore;
  };

/**
 * The number of checks that begin within this time; others that are due, as after a start of the daemon, follow later.
 */
const AT_ONCE = 16;
const WINDOW_MS = 50;
/** The time for which a container's users and groups, and the addresses of its links, are cached. */
const DESCRIBED_MINUTES = 5;
/** The exit code of a check that could not be run, or took too long. */
const FAILED_CODE = -1;

/** A watched container; a new object after each pause and each start. */
type Watch = {
  readonly id: string;
  readonly check: Check;
  timer: Disposable | undefined;
  /** While a check runs. */
  shim: Shim | undefined;
  /** When its process was described to the runtime. */
  describedAt: Temporal.Instant | undefined;
};

/** Runs the health checks of all containers: each after its interval, which begins with the end of the one before. */
export class HealthChecks implements Disposable {
  readonly #engine: HealthNeeds;
  readonly #watches = new Map<string, Watch>();
  readonly #due: Watch[] = [];
  /** The timer during which no more than AT_ONCE checks begin. */
  #window: Disposable | undefined;
  #begun = 0;

  constructor(engine: HealthNeeds) {
    this.#engine = engine;
  }

  /** The health of a container; undefined if it was never checked. */
  of(id: string): Health | undefined {
    return this.#engine.healthStore.get(id);
  }

  /** Called in the transaction that stores a start. */
  begin({ id, config }: Container): void {
    const check = checkOf(config);
    if (check === undefined) return;
    const { db, healthStore } = this.#engine;
    healthStore.put(atStart(id, healthStore.get(id)));
    db.afterCommit(() => this.#watch(id, check));
  }

  /** For a running container, after a pause or a restart of the daemon. Its health so far stays. */
  resume({ id, config }: Container): void {
    const check = checkOf(config);
    if (check === undefined || this.of(id) === undefined) return;
    this.#engine.db.afterCommit(() => this.#watch(id, check));
  }

  /** Called in the transaction that stores a pause or an end. */
  end(id: string): void {
    const { db, healthStore } = this.#engine;
    const before = healthStore.get(id);
    if (before === undefined) return;
    healthStore.put(markUnhealthy(before));
    db.afterCommit(() => this.#unwatch(id));
  }

  /** Called in the transaction that removes the container. */
  forget(id: string): void {
    this.#engine.healthStore.delete(id);
  }

  /** No further check begins. */
  [Symbol.dispose](): void {
    this.#window?.[Symbol.dispose]();
    for (const id of [...this.#watches.keys()]) this.#unwatch(id);
  }

  #watch(id: string, check: Check): void {
    this.#unwatch(id);
    const watch: Watch = { id, check, timer: undefined, shim: undefined, describedAt: undefined };
    this.#watches.set(id, watch);
    this.#later(watch);
  }

  #unwatch(id: string): void {
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    this.#watches.delete(id);
    watch.timer?.[Symbol.dispose]();
    watch.shim?.cancelProbe();
  }

  #isCurrent(watch: Watch): boolean {
    return this.#watches.get(watch.id) === watch;
  }

  /** Also checks whether the run goes on. */
  #isOf(watch: Watch, shim: Shim): boolean {
    return this.#isCurrent(watch) && this.#engine.runs.of(watch.id).shim === shim;
  }

  #later(watch: Watch): void {
    if (!this.#isCurrent(watch)) return;
    watch.timer = this.#engine.clock.after(this.#intervalOf(watch), () => {
      this.#due.push(watch);
      this.#beginDue();
    });
  }

  #intervalOf({ id, check }: Watch): number {
    const { clock, containers, healthStore } = this.#engine;
    const state = containers.get(id)?.state;
    const isStarting = healthStore.get(id)?.status === 'starting' && state !== undefined && isAlive(state);
    if (!isStarting || check.startPeriodMs === 0) return check.intervalMs;
    const age = state.startedAt.until(clock.now()).total('milliseconds');
    const left = check.startPeriodMs - age;
    return left > 0 ? Math.min(check.startIntervalMs, left) : check.intervalMs;
  }

  #beginDue(): void {
    this.#window ??= this.#engine.clock.after(WINDOW_MS, () => {
      this.#window = undefined;
      this.#begun = 0;
      if (this.#due.length > 0) this.#beginDue();
    });
    for (const watch of this.#due.splice(0, AT_ONCE - this.#begun)) {
      if (!this.#isCurrent(watch)) continue;
      this.#begun += 1;
      this.#engine.background.run('check the health of a container', { container: watch.id }, async () => {
        try {
          await this.#run(watch);
        } finally {
          this.#later(watch);
        }
      });
    }
  }

  async #run(watch: Watch): Promise<void> {
    const { clock, containers, runs } = this.#engine;
    const container = containers.get(watch.id);
    const { shim } = runs.of(watch.id);
    if (container === undefined || shim === undefined) return;
    const start = clock.now();
    let isLate = false;
    const tooLate = (): void => {
      isLate = true;
      const output = `Health check exceeded timeout (${goDurationText(watch.check.timeoutMs * 1e6)})`;
      this.#record(watch, { start, end: clock.now(), exitCode: FAILED_CODE, output });
    };
    const execId = newId();
    try {
      const { exitCode, endedAt, output } = await this.#probe(watch, { container, shim, execId, tooLate });
      this.#engine.db.transaction(() => {
        this.#emit('exec_die', watch.id, { execID: execId, exitCode: String(exitCode) });
        if (!isLate) this.#record(watch, { start, end: endedAt, exitCode, output });
      });
    } catch (error) {
      // The end of the container or of its shim is not a result of the check.
      const isConflict = error instanceof EngineError && error.kind === 'conflict';
      if (error instanceof ShimLost || isConflict || !this.#isOf(watch, shim)) return;
      watch.describedAt = undefined;
      const output = messageOf(error);
      if (!isLate) this.#record(watch, { start, end: clock.now(), exitCode: FAILED_CODE, output });
      if (!(error instanceof StartFailed || error instanceof EngineError)) throw error;
    }
  }

  async #probe(
    watch: Watch,
    { container, shim, execId, tooLate }: { container: Container; shim: Shim; execId: string; tooLate: () => void },
  ): Promise<ProbeEnd> {
    const { check } = watch;
    const said = `${check.command[0]} ${check.command.slice(1).join(' ')}`;
    this.#engine.db.transaction(() => {
      this.#emit(`exec_create: ${said}`, watch.id, { execID: execId });
      this.#emit(`exec_start: ${said}`, watch.id, { execID: execId });
    });
    await this.#describe(watch, container, shim);
    if (!this.#isOf(watch, shim)) throw new EngineError('conflict', 'the health checks of the container have ended');
    watch.shim = shim;
    try {
      const { OomScoreAdj: oomScoreAdj } = container.hostConfig;
      return await shim.probe({ timeoutMs: check.timeoutMs, oomScoreAdj }, tooLate);
    } finally {
      watch.shim = undefined;
    }
  }

  /** Looking up the user is the most expensive part of a check, so a description serves for some minutes. */
  async #describe(watch: Watch, container: Container, shim: Shim): Promise<void> {
    const now = this.#engine.clock.now();
    const { describedAt } = watch;
    if (describedAt !== undefined && describedAt.until(now).total('minutes') < DESCRIBED_MINUTES) return;
    const described = await enteredProcess(this.#engine, container, shim.pid, {
      command: watch.check.command,
      user: container.config.User,
      tty: false,
      privileged: false,
      env: [],
      workingDir: '',
    });
    if (!this.#isOf(watch, shim)) return; // its folder is being removed
    writeFileSync(join(shim.directory, PROBE_FILE), JSON.stringify(described));
    watch.describedAt = now;
  }

  #record(watch: Watch, result: CheckResult): void {
    const { containers, db, healthStore } = this.#engine;
    const before = healthStore.get(watch.id);
    const container = containers.get(watch.id);
    if (!this.#isCurrent(watch) || before === undefined || container === undefined || !isAlive(container.state)) return;
    count('healthChecks');
    if (result.exitCode !== 0) count('healthChecksFailed');
    const after = afterResult(before, result, watch.check, container.state.startedAt);
    db.transaction(() => {
      healthStore.put(after);
      if (after.status !== before.status) this.#emit(`health_status: ${after.status}`, watch.id, {});
    });
  }

  #emit(action: string, id: string, attributes: Readonly<Record<string, string>>): void {
    const container = this.#engine.containers.get(id);
    if (container !== undefined) emitContainer(this.#engine.events, action, container, attributes);
  }
}
