import type { Size } from '../containers/lifecycle/resize.ts';
import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';

type Needs = Pick<Engine, 'execs' | 'execShims'>;

/**
 * Sets the terminal's size; before the start it sets the initial size. Throws `notFound`. Specification, endpoint 27.
 */
export async function resizeExec(engine: Needs, ref: string, { width, height }: Size): Promise<void> {
  const { id, state } = engine.execs.find(ref);
  const shim = engine.execShims.get(id);
  if (shim !== undefined) await shim.resize(width, height);
  else if (state.status === 'ended') throw new EngineError('notFound', `No such exec instance: ${id} has ended`);
  else engine.execs.change(id, (current) => ({ ...current, size: { width, height } }));
}
