import { isDeepStrictEqual } from 'node:util';

import { badArchive } from '../../layers/tar/tar-header.ts';
import type { ArchivedImage } from './archived-image.ts';

/** Drops parents that the archive does not have. Throws `invalid` for a parent on which its child cannot have been built. */
export function withKnownParents(images: readonly ArchivedImage[]): ArchivedImage[] {
  const byId = new Map(images.map((image) => [image.id, image]));
  return images.map(({ parentId, ...image }) => {
    const parent = parentId === undefined || parentId === image.id ? undefined : byId.get(parentId);
    if (parent === undefined) return image;
    if (!isParent(parent, image)) {
      throw badArchive(`the image ${parent.id} cannot be the parent of ${image.id}: its history is another one`);
    }
    return { ...image, parentId: parent.id };
  });
}

/** A child has one more step, or without a history one more layer. So no image is its own ancestor. */
function isParent(parent: ArchivedImage, child: ArchivedImage): boolean {
  const [before, after] = [historyOf(parent), historyOf(child)];
  if (before.length === 0 && after.length === 0) return startsWith(child.diffIds, parent.diffIds);
  return startsWith(after, before);
}

function startsWith(longer: readonly unknown[], shorter: readonly unknown[]): boolean {
  return longer.length === shorter.length + 1 && isDeepStrictEqual(longer.slice(0, -1), [...shorter]);
}

function historyOf({ json }: ArchivedImage): readonly unknown[] {
  return (JSON.parse(json) as { history?: unknown[] | null }).history ?? [];
}
