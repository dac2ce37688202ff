import { EngineError } from '../lib/errors.ts';
import type { Shim } from '../runtime/shim.ts';
import type { Shims } from './shims.ts';
import { isAlive } from './state.ts';
import type { Container, ContainerStore } from './store.ts';

type Needs = { containers: ContainerStore; shims: Shims };

/** The running container a client means, with its shim. Throws `notFound`, and `conflict` when it does not run. */
export function findAlive(engine: Needs, ref: string): { container: Container; shim: Shim } {
  const container = engine.containers.find(ref);
  const shim = engine.shims.get(container.id);
  if (!isAlive(container.state) || shim === undefined) throw notRunning(container.id);
  return { container, shim };
}

export function notRunning(id: string): EngineError {
  return new EngineError('conflict', `Container ${id} is not running`);
}
