import type { Engine } from '../../engine.ts';
import { booleanFilter } from '../../http/values/filters.ts';
import type { PruneFilters } from '../../http/values/prune-filters.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { familiarReference } from '../names/reference.ts';
import type { Image } from '../store.ts';
import { deleteImage, type Removal } from './delete.ts';

type Needs = Pick<Engine, 'db' | 'events' | 'images' | 'imageUsage' | 'layers'>;

export type PrunedImages = { removals: Removal[]; bytes: number };

/** Removes images without a tag, or with the filter `dangling=false` all that no container has, each in one step. */
export async function pruneImages(engine: Needs, { filters, matches }: PruneFilters): Promise<PrunedImages> {
  const isThorough = booleanFilter(filters, 'dangling') === false;
  const sizes = new Map(engine.layers.all().map(({ chainId, sizeBytes }) => [chainId, sizeBytes]));
  const pruned: PrunedImages = { removals: [], bytes: 0 };
  const slices = new Slices();
  for (const image of engine.images.all()) {
    if (slices.isOver) await slices.pause();
    if (engine.images.isOtherPlatform(image.id)) continue; // it goes with the image that stands for its index
    if (!matches({ labels: image.labels ?? {}, createdAt: image.createdAt })) continue;
    for (const ref of removable(engine, image, isThorough)) {
      if (slices.isOver) await slices.pause(); // an image may have thousands of names
      for (const removal of deletedUnlessUsed(engine, ref)) {
        pruned.removals.push(removal);
        if ('deleted' in removal) pruned.bytes += sizes.get(removal.deleted) ?? 0;
      }
    }
  }
  engine.events.emit('image', 'prune', '', { reclaimed: String(pruned.bytes) });
  return pruned;
}

/** An image's names, or its id if it has none: steps of builds go with the image above them. */
function removable({ images }: Needs, { id }: Image, isThorough: boolean): string[] {
  if (images.get(id) === undefined) return []; // it went with another one
  const names = images.referencesOf(id);
  if (names.length === 0) return images.childrenOf(id).length === 0 ? [id] : [];
  const isNamed = names.some(({ tag }) => tag !== undefined);
  if (isNamed && !isThorough) return [];
  return images.childrenOf(id).length > 0 && !isThorough ? [] : names.map(familiarReference);
}

function deletedUnlessUsed(engine: Needs, ref: string): Removal[] {
  try {
    return deleteImage(engine, ref, { force: false, noprune: false });
  } catch (error) {
    // It is used, or its last name has gone with another one.
    if (error instanceof EngineError && (error.kind === 'conflict' || error.kind === 'notFound')) return [];
    throw error;
  }
}
