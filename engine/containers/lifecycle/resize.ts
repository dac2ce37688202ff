import type { Engine } from '../../engine.ts';
import { emitIfThere } from '../container-events.ts';
import { findAlive } from '../runs/find-alive.ts';

type Needs = Pick<Engine, 'containers' | 'events' | 'runs'>;
export type Size = { width: number; height: number };

/** Sets the terminal's size, in characters. Throws `conflict` when it is not running. */
export async function resizeContainer(engine: Needs, ref: string, { width, height }: Size): Promise<void> {
  const { container, shim } = findAlive(engine, ref);
  await shim.resize(width, height);
  emitIfThere(engine, 'resize', container.id, { height: String(height), width: String(width) });
}
