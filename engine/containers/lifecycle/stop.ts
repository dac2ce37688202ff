import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { measure } from '../../lib/measures.ts';
import { emitContainer, emitIfThere } from '../container-events.ts';
import { refuseUnclear, startOver } from '../runs/find-alive.ts';
import { thaw } from '../runs/freezer.ts';
import { isAlive, transition } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { stopSignalOf } from './stop-signal.ts';

export type StopNeeds = Pick<Engine, 'clock' | 'config' | 'containers' | 'events' | 'locks' | 'runs'>;

const DEFAULT_GRACE_SECONDS = 10;
const SIGKILL = 9;

/** The options of a stop; a signal or a grace period that is missing is the container's. */
export type StopOptions = Readonly<{
  graceSeconds?: number | undefined;
  signal?: number | undefined;
  /** The origin of the stop: after one by a user, the next daemon does not start the container. */
  by?: 'user' | 'daemon';
}>;

/**
 * Sends the stop signal, and SIGKILL to processes that are still alive after `graceSeconds`; a negative number waits
 * for ever.
 *
 * It continues when the client hangs up, so that no container is left half-stopped.
 */
export async function stopContainer(
  engine: StopNeeds,
  ref: string,
  { graceSeconds, signal, by = 'user' }: StopOptions = {},
): Promise<void> {
  const measured = measure('container', 'stop');
  const { id } = engine.containers.find(ref);
  await startOver(engine, id);
  refuseUnclear(engine, engine.containers.find(id));
  const container = beginStop(engine, id, { by, signal });
  const { config, state } = container;
  if (state.status === 'exited') {
    // Between two runs of its restart policy there is no process to signal.
    const ended = engine.runs.of(id);
    ended.forgetRestarts();
    ended.tellSettled();
    return;
  }
  const run = engine.runs.of(id);
  const exited = run.settled(); // waits until the exit is stored, so that an inspect after the stop agrees
  thaw(container);
  await run.signal(signal ?? stopSignalOf(container));
  const grace = graceSeconds ?? config.StopTimeout ?? DEFAULT_GRACE_SECONDS;
  if (grace >= 0 && !(await settlesWithin(exited, grace, engine.clock))) {
    emitContainer(engine.events, 'kill', container, { signal: String(SIGKILL) });
    await run.signal(SIGKILL);
  }
  await exited;
  emitIfThere(engine, 'stop', id);
  measured();
}

/** One commit: the state, and the event of the signal that is sent next, or of the stop without a process. */
function beginStop(
  { containers, events }: StopNeeds,
  id: string,
  { by, signal }: { by: 'user' | 'daemon'; signal: number | undefined },
): Container {
  return containers.together(() => {
    const changed = claimStop(containers, id, by);
    if (changed.state.status === 'stopping') {
      emitContainer(events, 'kill', changed, { signal: String(signal ?? stopSignalOf(changed)) });
    }
    if (changed.state.status === 'exited') emitContainer(events, 'stop', changed);
    return changed;
  });
}

function claimStop(containers: ContainerStore, id: string, by: 'user' | 'daemon'): Container {
  return containers.change(id, (current) => {
    const { state } = current;
    const stoppedByUser = current.stoppedByUser || by === 'user';
    if (state.status === 'restarting') {
      return { ...current, stoppedByUser, state: transition(state, { ...state, status: 'exited' }) };
    }
    if (!isAlive(state)) throw new EngineError('notModified', `Container ${current.id} is already stopped`);
    if (state.status === 'stopping') return current; // another stop is under way: wait with it
    return { ...current, stoppedByUser, state: transition(state, { ...state, status: 'stopping' }) };
  });
}
