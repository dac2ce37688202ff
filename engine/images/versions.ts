import type { Steps } from '../http/versions/steps.ts';
import type { ImageSummary } from './schema.ts';

/** Newest first; each applies to answers for older versions. */
export const imageListSteps: Steps<unknown, ImageSummary[]> = [
  // -1 means "not computed".
  { below: '1.51', response: (images) => images.map((image) => ({ ...image, Containers: -1 })) },
  { below: '1.43', response: (images) => images.map(withPlaceholderNames) },
];

/** Older clients print these two words for an image without a name, and expect null for one missing kind of name. */
export function withPlaceholderNames<Summary extends Pick<ImageSummary, 'RepoTags' | 'RepoDigests'>>(
  image: Summary,
): Summary {
  const tags = image.RepoTags ?? [];
  const digests = image.RepoDigests ?? [];
  if (tags.length + digests.length === 0) {
    return { ...image, RepoTags: ['<none>:<none>'], RepoDigests: ['<none>@<none>'] };
  }
  return { ...image, RepoTags: tags.length > 0 ? tags : null, RepoDigests: digests.length > 0 ? digests : null };
}
