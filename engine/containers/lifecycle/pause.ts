import type { Engine } from '../../engine.ts';
import { isRootless } from '../../host/rootless.ts';
import { EngineError } from '../../lib/errors.ts';
import { emitContainer } from '../container-events.ts';
import { notRunning } from '../runs/find-alive.ts';
import { freeze, thaw } from '../runs/freezer.ts';
import { isAlive, transition } from '../state.ts';

export type PauseNeeds = Pick<Engine, 'containers' | 'events' | 'health'>;

/**
 * Throws `conflict` when it is not running, is paused already, or has no cgroup that can be frozen. `pausedFor`: work of the engine, not a user's request.
 */
export function pauseContainer(engine: PauseNeeds, ref: string, pausedFor?: 'commit'): void {
  const { id } = engine.containers.find(ref);
  if (isRootless && pausedFor === undefined) {
    throw new EngineError('failed', `cannot pause container ${id}: this user has no cgroups`);
  }
  using undo = new DisposableStack();
  engine.containers.together(() => {
    const paused = engine.containers.change(id, (current) => {
      const { state } = current;
      if (!isAlive(state)) throw notRunning(id);
      if (state.status === 'paused') throw new EngineError('conflict', `Container ${id} is already paused`);
      const next = transition(state, { ...state, status: 'paused', ...(pausedFor !== undefined && { pausedFor }) });
      undo.defer(() => thaw(current)); // also if the state cannot be stored
      const isFrozen = freeze(current); // the last check: a frozen process gets no signals
      if (!isFrozen && pausedFor === undefined) throw notFreezable(id);
      return { ...current, state: next };
    });
    emitContainer(engine.events, 'pause', paused);
    engine.health.end(id);
  });
  undo.move();
}

/** Throws `conflict` when it is not paused. */
export function unpauseContainer(engine: PauseNeeds, ref: string): void {
  const { id } = engine.containers.find(ref);
  using undo = new DisposableStack();
  engine.containers.together(() => {
    const running = engine.containers.change(id, (current) => {
      const { state } = current;
      if (state.status !== 'paused') throw new EngineError('conflict', `Container ${id} is not paused`);
      const { pausedFor: _over, ...alive } = state;
      const next = transition(state, { ...alive, status: 'running' });
      undo.defer(() => freeze(current));
      thaw(current);
      return { ...current, state: next };
    });
    emitContainer(engine.events, 'unpause', running);
    engine.health.resume(running);
  });
  undo.move();
}

/** A commit goes on without: its files are only less consistent. */
function notFreezable(id: string): EngineError {
  const reason = 'it is in no cgroup that can be frozen (is the cgroup controller freezer mounted on this machine?)';
  return new EngineError('conflict', `cannot pause container ${id}: ${reason}`);
}
