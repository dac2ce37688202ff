import type { Engine } from '../engine.ts';
import type { Platform } from './configuration/platform.ts';
import { manifestSummaries, targetDescriptor } from './manifests/summaries.ts';
import { imageInspect } from './present.ts';
import type { ImageInspect } from './schema.ts';

type Needs = Pick<Engine, 'blobs' | 'images' | 'imageUsage' | 'layers'>;
type Wanted = Readonly<{ platform: Platform | undefined; manifests: boolean }>;

/** An image with the document that its name stands for, or with the manifest of one platform. */
export function inspectImage(engine: Needs, ref: string, { platform, manifests }: Wanted): ImageInspect {
  const { images, layers } = engine;
  const image = images.find(ref, platform);
  const { id } = image;
  const target = images.targetOf(ref, image);
  const names = {
    tags: images.tagsOf(id),
    digests: images.digestsOf(id),
    repositories: images.repositoriesOf(id),
    taggedAt: images.taggedAt(id),
  };
  const chain = layers.chain(image.layers.at(-1));
  return imageInspect(
    image,
    names,
    { chain, directory: layers.folders.directory },
    {
      descriptor:
        platform === undefined
          ? targetDescriptor(engine, image, target)
          : (images.documents.manifestOf(id) ?? targetDescriptor(engine, image, undefined)),
      manifests: manifests ? manifestSummaries(engine, image, target) : undefined,
    },
  );
}
