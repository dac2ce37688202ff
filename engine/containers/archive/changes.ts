import type { Copies } from '../../copies/copies.ts';
import type { Layers } from '../../layers/layers.ts';
import type { Change } from '../../layers/pack/changes.ts';
import type { ContainerStore } from '../store.ts';

type Needs = { containers: ContainerStore; copies: Copies; layers: Layers };

/** What a container has changed of its image's files. Specification, endpoint 6. */
export async function containerChanges(engine: Needs, ref: string): Promise<Change[]> {
  const { id } = engine.containers.find(ref);
  const { base, lower, upper } = engine.layers.wholeOverlay(id);
  try {
    return await engine.copies.changes(
      upper,
      lower.map((folder) => `${base}/${folder}`),
    );
  } catch (error) {
    engine.containers.find(id); // its files have gone with it: that it does not exist is the answer
    throw error;
  }
}
