import { rm } from 'node:fs/promises';

import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { detach, type NetworkNeeds } from '../networks/sandbox.ts';
import type { ExitStatus } from '../runtime/exit-status.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { ShimLost, type Shim } from '../runtime/shim.ts';
import { emitContainer, emitUnmounts } from './container-events.ts';
import { cgroupPathOf, shimFolder } from './places.ts';
import { removeRemains } from './remains.ts';
import { RunEnds } from './run-ends.ts';
import type { Shims } from './shims.ts';
import { exitCodeOf, isAlive, transition } from './state.ts';
import type { Container, ContainerStore } from './store.ts';

type Needs = NetworkNeeds & {
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  db: Database;
  log: { error(details: object, message: string): void };
  runtimes: Runtimes;
  shims: Shims;
};

/** The code of a run whose end nobody saw: the machine went down. */
const LOST_CODE = 255;
const RETRY_MS = 1000;
/** Of a container that was ended with SIGKILL, because it is removed or because its shim is gone. */
const KILLED_CODE = 137;

/** Stores the end of every run, and then tells those who wait for it. */
export class Exits {
  /** For those whom a restart policy does not let wait on. */
  readonly runs = new RunEnds();
  readonly #engine: Needs;
  readonly #ended: (container: Container) => void;
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();

  /** `ended` is called when the end is stored and before it is told: the restart policy's moment. */
  constructor(engine: Needs, ended: (container: Container) => void) {
    this.#engine = engine;
    this.#ended = ended;
  }

  /** Resolves after the end of the present run is committed; at once where there is none. */
  async recorded(id: string): Promise<void> {
    const state = this.#engine.containers.get(id)?.state;
    // A container between two runs of its restart policy has not ended for those who wait.
    if (state === undefined || !(isAlive(state) || state.status === 'starting' || state.status === 'restarting'))
      return;
    const waiting = this.#waiting.get(id) ?? Promise.withResolvers<void>();
    this.#waiting.set(id, waiting);
    await waiting.promise;
  }

  /** Wakes those who wait, when the container does not run and will not by itself. */
  settle(id: string): void {
    const state = this.#engine.containers.get(id)?.state;
    if (state !== undefined && (isAlive(state) || state.status === 'starting' || state.status === 'restarting')) return;
    this.runs.tell(id, state === undefined ? KILLED_CODE : exitCodeOf(state));
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.resolve();
  }

  /** Records the end of the run that this shim watches, whenever it comes. */
  follow(id: string, shim: Shim): void {
    shim.onOom(() => this.#outOfMemory(id));
    void this.#await(id, shim);
  }

  /** Stores an end: one commit for the state, what is given back, and the events. */
  record(id: string, status: ExitStatus): void {
    const { containers, db, events } = this.#engine;
    const ended = db.transaction(() => {
      const exited = containers.change(id, (current) => ({
        ...current,
        oomKilled: current.oomKilled || status.oomKilled,
        state: exitedState(current, status),
      }));
      emitContainer(events, 'die', exited, { exitCode: String(status.exitCode) });
      detach(this.#engine, id);
      emitUnmounts(events, exited);
      this.#ended(exited);
      return exited;
    });
    this.runs.tell(id, status.exitCode);
    this.settle(ended.id);
  }

  /** A shim that was killed says nothing: the container is ended and recorded with a code that says so. */
  async recordLost(container: Container): Promise<void> {
    const { config, runtimes } = this.#engine;
    const { id, hostConfig } = container;
    const killed = await removeRemains(runtimes.get(hostConfig.Runtime), id, cgroupPathOf(container));
    await rm(shimFolder(config, id), { recursive: true, force: true });
    this.record(id, {
      exitCode: killed ? KILLED_CODE : LOST_CODE,
      oomKilled: false,
      finishedAt: this.#engine.clock.now(),
    });
  }

  async #await(id: string, shim: Shim): Promise<void> {
    const { containers, shims } = this.#engine;
    try {
      const status = await shim.exited;
      await this.#recordWhenPossible(id, status);
      shim.release();
      const gone = shim.gone.then(async () => await rm(shim.directory, { recursive: true, force: true }));
      shims.remove(id, gone);
    } catch (error) {
      const container = containers.get(id);
      if (!(error instanceof ShimLost) || container === undefined) throw error;
      shims.remove(id, this.recordLost(container));
    }
  }

  /** A disk may be full beyond what the database has kept for itself: the end is not lost, it is stored later. */
  async #recordWhenPossible(id: string, status: ExitStatus): Promise<void> {
    const { clock, log } = this.#engine;
    for (;;) {
      try {
        this.record(id, status);
        return;
      } catch (error) {
        log.error({ err: error, container: id }, 'the end of a container cannot be stored yet');
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      clock.after(RETRY_MS, resolve);
      await promise;
    }
  }

  #outOfMemory(id: string): void {
    const { containers, events } = this.#engine;
    const container = containers.get(id);
    if (container !== undefined) emitContainer(events, 'oom', container);
  }
}

function exitedState({ state }: Container, { exitCode, finishedAt }: ExitStatus): Container['state'] {
  const startedAt = isAlive(state) ? state.startedAt : finishedAt;
  return transition(state, { status: 'exited', exitCode, startedAt, finishedAt });
}
