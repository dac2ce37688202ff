import type { Engine } from '../../engine.ts';
import type { KeyLock } from '../../lib/concurrency/key-lock.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Shim } from '../../runtime/shim/shim.ts';
import { isAlive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';

type Needs = Pick<Engine, 'containers' | 'runs'>;

/** Finds a running container and its shim. Throws `notFound`, and `conflict` if it is not running. */
export function findAlive(engine: Needs, ref: string): { container: Container; shim: Shim } {
  const container = engine.containers.find(ref);
  const shim = engine.runs.of(container.id).shim;
  refuseUnclear(engine, container);
  if (!isAlive(container.state) || shim === undefined) throw notRunning(container.id);
  return { container, shim };
}

export function notRunning(id: string): EngineError {
  return new EngineError('conflict', `Container ${id} is not running`);
}

/** Waits for a container's start under way, which holds the lock, so that requests meanwhile apply to its run. */
export async function startOver(engine: { containers: ContainerStore; locks: KeyLock }, id: string): Promise<void> {
  if (engine.containers.get(id)?.state.status === 'starting') (await engine.locks.hold(id))[Symbol.dispose]();
}

/** Throws `failed` for a container whose state is unknown since the daemon's start. */
export function refuseUnclear({ runs }: Pick<Needs, 'runs'>, { id, state, error }: Container): void {
  if (!(isAlive(state) || state.status === 'starting') || !runs.of(id).isUnclear) return;
  const reason = error === '' ? 'the daemon is still starting, and has not recovered it yet' : error;
  throw new EngineError('failed', `Container ${id} cannot be reached: ${reason}`);
}
