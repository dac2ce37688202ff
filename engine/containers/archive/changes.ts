import type { Engine } from '../../engine.ts';
import { measure } from '../../lib/measures.ts';

type Needs = Pick<Engine, 'containers' | 'copies' | 'layers'>;

/** The changes of a container to its image's files, as JSON. Specification, endpoint 6. */
export async function containerChanges(engine: Needs, ref: string): Promise<Buffer> {
  const measured = measure('container', 'changes');
  const { id } = engine.containers.find(ref);
  const { base, lower, upper } = engine.layers.wholeOverlay(id);
  try {
    const changes = await engine.copies.changes(
      upper,
      lower.map((folder) => `${base}/${folder}`),
    );
    measured();
    return changes;
  } catch (error) {
    engine.containers.find(id); // it was removed with its files, so the answer is that it does not exist
    throw error;
  }
}
