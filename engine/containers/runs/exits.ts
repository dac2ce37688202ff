import { rm } from 'node:fs/promises';

import type { Config } from '../../config/daemon-config.ts';
import type { Database } from '../../db/database.ts';
import type { Background, Task } from '../../lib/background.ts';
import { settlesWithin, type Clock } from '../../lib/clock.ts';
import { closeSandbox, type NetworkNeeds } from '../../networks/sandbox.ts';
import type { ExitStatus } from '../../runtime/exit-status.ts';
import type { Runtimes } from '../../runtime/runtimes.ts';
import type { Shim } from '../../runtime/shim.ts';
import { emitContainer, emitUnmounts } from '../container-events.ts';
import { exitCodeOf, isAlive, transition } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { cgroupPathOf, shimFolder } from './places.ts';
import { endProcesses, removeIfLeft, removeRemains } from './remains.ts';
import { RunEnds } from './run-ends.ts';
import type { Shims } from './shims.ts';

type Needs = NetworkNeeds & {
  background: Background;
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  db: Database;
  runtimes: Runtimes;
  shims: Shims;
};

/** The code of a run whose end nobody saw: the machine went down. */
const LOST_CODE = 255;
/** Of a container that was ended with SIGKILL, because it is removed or because its shim is gone. */
const KILLED_CODE = 137;
/** For this long a caller waits for the end of a container without a shim; the rest happens behind its back. */
const PATIENCE_SECONDS = 2;

/** What came of a start. `byPolicy`: no user asked for it. */
export type FailedStart = Readonly<{ exitCode: number; message: string; restartCount: number; byPolicy: boolean }>;

/** Stores the end of every run, and then tells those who wait for it. */
export class Exits {
  /** For those whom a restart policy does not let wait on. */
  readonly runs = new RunEnds();
  readonly #engine: Needs;
  readonly #ended: (container: Container, how: { ran: boolean }) => void;
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();

  /** `ended` is called in the transaction that stores the end: the restart policy's moment. */
  constructor(engine: Needs, ended: (container: Container, how: { ran: boolean }) => void) {
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

  /** Records the end of the run that this shim watches, whenever it comes; on a full disk as soon as there is space. */
  follow(id: string, shim: Shim): void {
    shim.onOom(() => this.#outOfMemory(id));
    shim.exited.then(
      (status) => this.#recordUntilDone(id, shim, status),
      async () => await this.#recordIfThere(id),
    );
  }

  /** Stores an end: one commit for the state, what is given back, and the events. */
  record(id: string, status: ExitStatus): void {
    const { containers, db, events } = this.#engine;
    const state = containers.get(id)?.state;
    if (state === undefined || !isAlive(state)) return; // somebody else saw it first
    db.transaction(() => {
      const exited = containers.change(id, (current) => ({
        ...current,
        oomKilled: current.oomKilled || status.oomKilled,
        state: exitedState(current, status),
      }));
      emitContainer(events, 'die', exited, { exitCode: String(status.exitCode) });
      closeSandbox(this.#engine, id);
      emitUnmounts(events, exited);
      this.#ended(exited, { ran: true });
    });
    this.runs.tell(id, status.exitCode);
    this.settle(id);
  }

  /** Stores that a start came to nothing: the container is what it was before, with the code and the reason. */
  recordFailedStart(id: string, { exitCode, message, restartCount, byPolicy }: FailedStart): void {
    const { containers, db, events } = this.#engine;
    if (containers.get(id)?.state.status !== 'starting') return;
    db.transaction(() => {
      closeSandbox(this.#engine, id);
      const failed = containers.change(id, (current) => {
        if (current.state.status !== 'starting') return current;
        const { from } = current.state;
        const back = from.status === 'restarting' ? ({ ...from, status: 'exited' } as const) : from;
        return {
          ...current,
          restartCount,
          state: transition(current.state, { ...back, exitCode }),
          error: message,
        };
      });
      emitContainer(events, 'die', failed, { exitCode: String(exitCode) });
      if (byPolicy) this.#ended(failed, { ran: false });
    });
    this.runs.tell(id, exitCode);
    this.settle(id);
  }

  /**
   * A shim that was killed says nothing: the container is ended and recorded with a code that says so. What cannot be
   * ended or removed within moments is tried again in the background.
   */
  async recordLost(container: Container): Promise<void> {
    const { background, clock, shims } = this.#engine;
    let killed = false;
    const { done } = background.untilDone('end a container without a shim', { container: container.id }, async () => {
      killed = (await endProcesses(cgroupPathOf(container))) || killed;
      await this.#removeLost(container, killed);
    });
    shims.remove(container.id, done);
    await settlesWithin(done, PATIENCE_SECONDS, clock);
  }

  /** It has no process any more: whatever cannot be removed of it, its end is recorded. */
  async #removeLost(container: Container, killed: boolean): Promise<void> {
    const { clock, config, runtimes } = this.#engine;
    const { id, hostConfig } = container;
    try {
      await removeRemains(runtimes.toRemove(hostConfig.Runtime), id, cgroupPathOf(container));
      await rm(shimFolder(config, id), { recursive: true, force: true });
    } finally {
      const exitCode = killed ? KILLED_CODE : LOST_CODE;
      this.record(id, { exitCode, oomKilled: false, finishedAt: clock.now() });
    }
  }

  #recordUntilDone(id: string, shim: Shim, status: ExitStatus): Task {
    const { background, shims } = this.#engine;
    return background.untilDone('record the end of a container', { container: id }, () => {
      this.record(id, status);
      shims.remove(id, this.#leave(id, shim));
    });
  }

  async #recordIfThere(id: string): Promise<void> {
    const container = this.#engine.containers.get(id);
    if (container !== undefined) await this.recordLost(container);
  }

  /** The exit is stored: until then the shim may be the only one that knows it. */
  async #leave(id: string, shim: Shim): Promise<void> {
    const { background, containers, runtimes } = this.#engine;
    const container = containers.get(id); // it may be removed meanwhile
    shim.release();
    await shim.gone;
    await background.untilDone('remove what a run has left', { container: id }, async () => {
      if (container !== undefined) {
        await removeIfLeft(runtimes.toRemove(container.hostConfig.Runtime), id, cgroupPathOf(container));
      }
      await rm(shim.directory, { recursive: true, force: true });
    }).done;
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
