import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { signalNumber } from '../../lib/notations/signal-number.ts';
import { emitContainer } from '../container-events.ts';
import { findAlive, notRunning, refuseUnclear, startOver } from '../runs/find-alive.ts';
import { thaw } from '../runs/freezer.ts';
import { isAlive, transition } from '../state.ts';
import type { Container } from '../store.ts';
import { unpauseContainer } from './pause.ts';
import { stopSignalOf } from './stop-signal.ts';

type Needs = Pick<Engine, 'containers' | 'events' | 'health' | 'locks' | 'runs'>;

const SIGKILL = 9;

/** Sends a signal; SIGKILL, which is the default, waits for the end. Throws `conflict` when it is not running. */
export async function killContainer(engine: Needs, ref: string, signal = ''): Promise<void> {
  const number = signal === '' ? SIGKILL : signalNumber(signal);
  await startOver(engine, engine.containers.find(ref).id);
  if (endRestarting(engine, ref)) return;
  if (number === SIGKILL) {
    await end(engine, ref);
    return;
  }
  const { container, shim } = findOrRefuse(ref, () => findAlive(engine, ref));
  const isStop = number === stopSignalOf(container);
  changeAndTell(engine, container.id, number, (current) => ({
    ...current,
    // A user ended it, so the restart policy does not start it again.
    stoppedByUser: current.stoppedByUser || isStop,
  }));
  await shim.signal(number);
  if (isToBeHeard(number, container)) resume(engine, container.id);
}

/** As in dockerd: a container with a stop signal of its own counts as stopped only by that one. */
function isToBeHeard(number: number, container: Container): boolean {
  return container.config.StopSignal === undefined || number === stopSignalOf(container);
}

/** A frozen process gets no signals. */
function resume(engine: Needs, id: string): void {
  if (engine.containers.get(id)?.state.status === 'paused') unpauseContainer(engine, id);
}

/** Also works if the shim was killed: then the daemon ends the container, and this waits for it. */
async function end(engine: Needs, ref: string): Promise<void> {
  const found = engine.containers.find(ref);
  refuseUnclear(engine, found);
  const { id } = found;
  const container = findOrRefuse(ref, () => changeAndTell(engine, id, SIGKILL, endingByUser));
  const run = engine.runs.of(id);
  const exited = run.settled();
  await run.signal(SIGKILL);
  thaw(container);
  await exited;
}

/** One commit: the record, and the event of the signal that is sent next. */
function changeAndTell(
  { containers, events }: Needs,
  id: string,
  signal: number,
  work: (current: Container) => Container,
): Container {
  return containers.together(() => {
    const changed = containers.change(id, work);
    emitContainer(events, 'kill', changed, { signal: String(signal) });
    return changed;
  });
}

/** From here on it cannot be paused, because a frozen process does not die. */
function endingByUser(current: Container): Container {
  const { state } = current;
  if (!isAlive(state)) throw notRunning(current.id);
  if (state.status === 'stopping') return { ...current, stoppedByUser: true };
  return { ...current, stoppedByUser: true, state: transition(state, { ...state, status: 'stopping' }) };
}

/** Between two runs of a restart policy there is no process: cancels the next run. */
function endRestarting(engine: Needs, ref: string): boolean {
  const { id, state } = engine.containers.find(ref);
  if (state.status !== 'restarting') return false;
  engine.containers.change(id, (current) => ({
    ...current,
    stoppedByUser: true,
    state: transition(current.state, { ...state, status: 'exited' }),
  }));
  const run = engine.runs.of(id);
  run.forgetRestarts();
  run.tellSettled();
  return true;
}

function findOrRefuse<T>(ref: string, find: () => T): T {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
    throw new EngineError('conflict', `Cannot kill container: ${ref}: ${error.message}`, { cause: error });
  }
}
