import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import { notRunning } from './alive.ts';
import { emitContainer } from './container-events.ts';
import { freeze, thaw } from './freezer.ts';
import { isAlive, transition } from './state.ts';
import type { ContainerStore } from './store.ts';

type Needs = { containers: ContainerStore; events: Events };

/** Throws `conflict` when it does not run or is paused already. */
export function pauseContainer(engine: Needs, ref: string): void {
  const { id } = engine.containers.find(ref);
  const paused = engine.containers.change(id, (current) => {
    const { state } = current;
    if (!isAlive(state)) throw notRunning(id);
    if (state.status === 'paused') throw new EngineError('conflict', `Container ${id} is already paused`);
    freeze(current);
    return { ...current, state: transition(state, { ...state, status: 'paused' }) };
  });
  emitContainer(engine.events, 'pause', paused);
}

/** Throws `conflict` when it is not paused. */
export function unpauseContainer(engine: Needs, ref: string): void {
  const { id } = engine.containers.find(ref);
  const running = engine.containers.change(id, (current) => {
    const { state } = current;
    if (state.status !== 'paused') throw new EngineError('conflict', `Container ${id} is not paused`);
    thaw(current);
    return { ...current, state: transition(state, { ...state, status: 'running' }) };
  });
  emitContainer(engine.events, 'unpause', running);
}
