import { MAX_NAMES, refuseAbove } from '../../buildfile/limits.ts';
import type { Engine } from '../../engine.ts';
import { familiarReference, parseReference, refuseAmbiguous, withDefaultTag } from '../../images/names/reference.ts';
import { giveName } from '../../images/names/tag.ts';
import type { Image } from '../../images/store.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Vertex } from '../progress/vertex.ts';

type Exported = ReadonlyMap<string, string>;

/** Gives the result of a build its names in the engine's store: the exporters `moby`, `image` and `docker`. */
export async function exportImage(
  engine: Engine,
  image: Image,
  attributes: ReadonlyMap<string, string>,
  vertex: Vertex,
): Promise<Exported> {
  const names = (attributes.get('name') ?? '').split(',').filter(Boolean);
  refuseAbove(MAX_NAMES, names.length, 'the output', 'names');
  const references = names.map((name) => {
    const reference = withDefaultTag(parseReference(name));
    if (reference.digest !== undefined) throw new EngineError('invalid', 'build tag cannot contain a digest');
    refuseAmbiguous(reference);
    return reference;
  });
  vertex.status('exporting layers', 0, 0, true);
  vertex.status(`writing image ${image.id}`, 0, 0, true);
  const slices = new Slices();
  for (const reference of references) {
    if (slices.isOver) await slices.pause();
    giveName(engine, image.id, reference);
    vertex.status(`naming to ${reference.repository}:${reference.tag}`, 0, 0, true);
  }
  return new Map([
    ['containerimage.digest', image.id],
    ['containerimage.config.digest', image.id],
    ...(references.length > 0 ? [['image.name', references.map(familiarReference).join(',')] as const] : []),
  ]);
}
