import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { closeSandbox, type NetworkNeeds } from '../../networks/endpoints/sandbox.ts';
import type { ExitStatus } from '../../runtime/exit-status.ts';
import { removeShimFolder } from '../../runtime/shim/shim-folder.ts';
import type { Shim } from '../../runtime/shim/shim.ts';
import { emitContainer, emitUnmounts } from '../container-events.ts';
import { isAlive, transition } from '../state.ts';
import type { Container } from '../store.ts';
import { cgroupPathOf, shimFolder } from './places.ts';
import { unmountVolumes, type VolumeMountNeeds } from './preparation/volume-mounts.ts';
import { endProcesses, removeIfLeft, removeRemains } from './remove-remains.ts';
import { applyRestartPolicy } from './restart-policy.ts';
import { storeFailures } from './store-failures.ts';

export type EndNeeds = NetworkNeeds &
  VolumeMountNeeds &
  Pick<Engine, 'clock' | 'config' | 'containers' | 'db' | 'deliveries' | 'execs' | 'health' | 'runs' | 'runtimes'>;

/** The exit code of a run that ended unobserved: the machine went down. */
const LOST_CODE = 255;
/** The exit code of a container that was ended with SIGKILL, because it is removed or because its shim is gone. */
const KILLED_CODE = 137;
/** A caller waits this long for the end of a container without a shim; the rest happens in the background. */
const TIMEOUT_SECONDS = 2;

/** The result of a start. `byPolicy`: it was not requested by a user. */
type FailedStart = Readonly<{ exitCode: number; message: string; byPolicy: boolean }>;

/** Records the end of this shim's run when it comes; on a full disk as soon as there is space. */
export function followRun(engine: EndNeeds, id: string, shim: Shim): void {
  const { background, containers, runs } = engine;
  const about = { container: id };
  runs.of(id).begin(shim);
  const followed = containers.get(id);
  if (followed !== undefined) engine.deliveries.follow(followed);
  shim.onOom(() => outOfMemory(engine, id));
  shim.exited.then(
    (status) =>
      background.untilDone('record the end of a container', about, () => {
        recordEnd(engine, id, status);
        runs.of(id).leave(leave(engine, id, shim));
      }),
    async () => {
      const container = containers.get(id);
      if (container !== undefined) await recordLost(engine, container);
    },
  );
}

/** Stores an end: one commit for the state, the freed resources, and the events. */
export function recordEnd(engine: EndNeeds, id: string, status: ExitStatus): void {
  const { containers, db, events, execs, health, runs } = engine;
  const state = containers.get(id)?.state;
  if (state === undefined || !isAlive(state)) return; // it is already recorded
  const ended = db.transaction(() => {
    const exited = containers.change(id, (current) => ({
      ...current,
      oomKilled: current.oomKilled || status.oomKilled,
      state: exitedState(current, status),
    }));
    emitContainer(events, 'die', exited, { exitCode: String(status.exitCode) });
    health.end(id);
    execs.deleteUnstartedOf(id);
    closeSandbox(engine, id);
    emitUnmounts(events, exited);
    applyRestartPolicy(engine, exited, { ran: true });
    return exited;
  });
  runs.of(id).tellEnd(status.exitCode);
  engine.deliveries.runEnded(ended);
}

/** Stores a failed start: the container returns to its former state, with the code and the reason. */
export function recordFailedStart(engine: EndNeeds, id: string, { exitCode, message, byPolicy }: FailedStart): void {
  const { containers, db, events, runs } = engine;
  if (containers.get(id)?.state.status !== 'starting') return;
  db.transaction(() => {
    closeSandbox(engine, id);
    const failed = containers.change(id, (current) => {
      if (current.state.status !== 'starting') return current;
      const { from } = current.state;
      const back = from.status === 'restarting' ? ({ ...from, status: 'exited' } as const) : from;
      return {
        ...current,
        state: transition(current.state, { ...back, exitCode }),
        error: message,
      };
    });
    emitContainer(events, 'die', failed, { exitCode: String(exitCode) });
    if (byPolicy) applyRestartPolicy(engine, failed, { ran: false });
  });
  if (byPolicy) runs.of(id).tellEnd(exitCode);
  else runs.of(id).tellFailedStart(exitCode);
}

/**
 * After the death of a shim the container is ended, and recorded with a code of its own. Processes and remains that do
 * not go within moments are retried in the background.
 */
export async function recordLost(engine: EndNeeds, container: Container): Promise<void> {
  const { background, clock, containers, runs } = engine;
  const { id } = container;
  let killed = false;
  const work = async (): Promise<void> => {
    killed = (await endProcesses(cgroupPathOf(container))) || killed;
    await removeLost(engine, container, killed);
    await unmountVolumes(engine, container).done;
  };
  const shown = storeFailures(containers, id, 'its shim is gone, and its remains cannot be removed yet', work);
  const { done } = background.untilDone('end a container without a shim', { container: id }, shown);
  runs.of(id).leave(done);
  await settlesWithin(done, TIMEOUT_SECONDS, clock);
}

/** It has no process any more: its end is recorded even if its remains cannot be removed. */
async function removeLost(engine: EndNeeds, container: Container, killed: boolean): Promise<void> {
  const { clock, config, runtimes } = engine;
  const { id, hostConfig } = container;
  try {
    await removeRemains(runtimes.toRemove(hostConfig.Runtime), id, cgroupPathOf(container));
    await removeShimFolder(shimFolder(config, id));
  } finally {
    const exitCode = killed ? KILLED_CODE : LOST_CODE;
    recordEnd(engine, id, { exitCode, oomKilled: false, finishedAt: clock.now() });
  }
}

/** The exit is stored: until then the shim may be the only one that knows it. */
async function leave(engine: EndNeeds, id: string, shim: Shim): Promise<void> {
  const { background, containers, runtimes } = engine;
  const container = containers.get(id); // it may be removed meanwhile
  shim.release();
  await shim.gone;
  await background.untilDone('clean up after a run', { container: id }, async () => {
    if (container !== undefined) {
      await removeIfLeft(runtimes.toRemove(container.hostConfig.Runtime), id, cgroupPathOf(container));
    }
    await removeShimFolder(shim.directory);
  }).done;
  if (container !== undefined) await unmountVolumes(engine, container).done;
}

function outOfMemory({ containers, events }: EndNeeds, id: string): void {
  const container = containers.get(id);
  if (container !== undefined) emitContainer(events, 'oom', container);
}

function exitedState({ state }: Container, { exitCode, finishedAt }: ExitStatus): Container['state'] {
  const startedAt = isAlive(state) ? state.startedAt : finishedAt;
  return transition(state, { status: 'exited', exitCode, startedAt, finishedAt });
}
