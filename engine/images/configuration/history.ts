import type { Engine } from '../../engine.ts';
import type { Image } from '../store.ts';
import type { HistoryEntry } from './image-config.ts';

type Needs = Pick<Engine, 'images' | 'layers'>;

export type HistoryStep = HistoryEntry & { sizeBytes: number; imageId: string | undefined; tags: string[] };

/** The steps that made an image, newest first. The newest step of each ancestor has that image's id. */
export function imageHistory(engine: Needs, image: Image): HistoryStep[] {
  const chain = [...image.layers];
  const steps = image.history.map((entry): HistoryStep => {
    const chainId = entry.emptyLayer ? undefined : chain.shift();
    const sizeBytes = chainId === undefined ? 0 : (engine.layers.get(chainId)?.sizeBytes ?? 0);
    return { ...entry, sizeBytes, imageId: undefined, tags: [] };
  });
  for (let owner: Image | undefined = image; owner !== undefined;) {
    const step = steps[owner.history.length - 1];
    if (step !== undefined) {
      step.imageId = owner.id;
      step.tags = engine.images.tagsOf(owner.id);
    }
    owner = owner.parentId === undefined ? undefined : engine.images.get(owner.parentId);
  }
  return steps.toReversed();
}
