import type { Engine } from '../engine.ts';
import type { Listed } from './list.ts';
import { manifestSummaries, targetDescriptor } from './manifests/summaries.ts';
import { imageSummary } from './present.ts';
import type * as wire from './schema.ts';

type Needs = Pick<Engine, 'blobs' | 'images' | 'imageUsage' | 'layers'>;

/** Parts of the answer that a client has to ask for. */
type Wanted = Readonly<{ sharedSizes: boolean; manifests: boolean; identity: boolean }>;

/** Listed images as clients see them: each with the sizes and the containers of all its platforms. */
export function listedSummaries(engine: Needs, listed: readonly Listed[], wanted: Wanted): wire.ImageSummary[] {
  const { images, imageUsage, layers } = engine;
  const counts = imageUsage.counts();
  const rows = listed.map((each) => {
    const platforms = images.withPlatforms(each.image);
    return { each, platforms, chainIds: new Set(platforms.flatMap((image) => image.layers)) };
  });
  const uses = new Map<string, number>();
  for (const { chainIds } of rows) for (const id of chainIds) uses.set(id, (uses.get(id) ?? 0) + 1);
  const bytesOf = (id: string): number => layers.get(id)?.sizeBytes ?? 0;
  return rows.map(({ each, platforms, chainIds }) => {
    const { image } = each;
    const shared = [...chainIds].filter((id) => uses.get(id)! > 1);
    const target = images.targetOf(image.id, image);
    return imageSummary(each, {
      bytes: sum([...chainIds].map(bytesOf)),
      sharedBytes: wanted.sharedSizes ? sum(shared.map(bytesOf)) : -1,
      containers: sum(platforms.map(({ id }) => counts.get(id) ?? 0)),
      descriptor:
        wanted.manifests || images.documents.get(target ?? '') ? targetDescriptor(engine, image, target) : undefined,
      manifests: wanted.manifests ? manifestSummaries(engine, image, target) : undefined,
      repositories: wanted.identity ? images.repositoriesOf(image.id) : [],
    });
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
