import type { CredentialsByHost } from '../../builder/options.ts';
import { MAX_NAMES, refuseAbove } from '../../buildfile/limits.ts';
import type { Engine } from '../../engine.ts';
import { fitsPlatform, HOST_PLATFORM } from '../../images/configuration/platform.ts';
import { familiarReference, parseReference, refuseAmbiguous, withDefaultTag } from '../../images/names/reference.ts';
import { giveName } from '../../images/names/tag.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Built } from '../frontend/build.ts';
import type { Vertex } from '../progress/vertex.ts';
import { indexOf } from './platform-index.ts';
import { pushNames } from './push.ts';

type Exported = ReadonlyMap<string, string>;

type How = Readonly<{ credentials: CredentialsByHost; vertex: Vertex; signal: AbortSignal }>;

/**
 * Gives the result of a build its names in the engine's store, and pushes them if the client asks for it: the outputs `moby` and
 * `image`. Several platforms are an index behind one name.
 */
export async function exportImage(
  engine: Engine,
  built: readonly Built[],
  attributes: ReadonlyMap<string, string>,
  { credentials, vertex, signal }: How,
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
  const index = built.length > 1 ? indexOf(engine, built) : undefined;
  const image = (built.find(({ platform }) => fitsPlatform(HOST_PLATFORM, platform)) ?? built[0]!).image;
  for (const each of built) vertex.status(`writing image ${each.image.id}`, 0, 0, true);
  const slices = new Slices();
  for (const reference of references) {
    if (slices.isOver) await slices.pause();
    engine.db.transaction(() => {
      engine.images.keepDocuments(index?.documents ?? []);
      giveName(engine, image.id, reference, index?.digest);
      if (index !== undefined)
        engine.images.refer({ repository: reference.repository, digest: index.digest }, image.id);
    });
    vertex.status(`naming to ${reference.repository}:${reference.tag}`, 0, 0, true);
  }
  const pushed =
    attributes.get('push') === 'true' ? await pushNames(engine, references, { credentials, vertex, signal }) : [];
  return new Map([
    ['containerimage.digest', index?.digest ?? image.id],
    ...(index === undefined ? [['containerimage.config.digest', image.id] as const] : []),
    ...pushed,
    ...(references.length > 0 ? [['image.name', references.map(familiarReference).join(',')] as const] : []),
  ]);
}
