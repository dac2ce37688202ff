import type { ImageSummary } from '@gantry/client/images.ts';

/** Its tags, or a word for an image without one. */
export function namesOf({ RepoTags, RepoDigests }: Pick<ImageSummary, 'RepoTags' | 'RepoDigests'>): readonly string[] {
  const tags = (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>');
  if (tags.length > 0) return tags;
  const digest = RepoDigests?.find((one) => !one.startsWith('<none>'));
  return [digest === undefined ? 'no name' : digest];
}
