import { lazyCheck } from '../../lib/lazy-check.ts';
import { RegistryError } from '../../registry/errors.ts';
import { DOCKER_LAYER, type Descriptor } from '../../registry/manifests.ts';
import type { OldLayer } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { oldHistoryEntry, OldSettings, writeOldConfiguration } from '../configuration/old-configuration.ts';

/** As many as an image of today may have. */
const MAX_LAYERS = 127;

const checkSettings = lazyCheck(OldSettings);

/** The layers of an image of schema 1, base first, with the sizes that its manifest does not tell. */
export async function oldLayers(
  repository: Repository,
  steps: readonly OldLayer[],
  signal: AbortSignal,
): Promise<Descriptor[]> {
  const digests = steps.filter(({ isEmpty }) => !isEmpty).map(({ blob }) => blob);
  if (digests.length > MAX_LAYERS) throw new RegistryError(`an image has at most ${MAX_LAYERS} layers`);
  const sizes = new Map<string, number>();
  for (const digest of new Set(digests)) sizes.set(digest, await repository.sizeOf(digest, signal));
  return digests.map((digest) => ({ mediaType: DOCKER_LAYER, digest, size: sizes.get(digest)! }));
}

/** The configuration of that image: the settings of its last step, and all steps as its history. */
export function oldConfiguration(steps: readonly OldLayer[], diffIds: readonly string[]): string {
  const history = steps.map(({ json, isEmpty }) => {
    const settings: unknown = JSON.parse(json);
    if (!checkSettings.Check(settings)) throw new RegistryError('invalid manifest of schema 1: settings of a layer');
    return oldHistoryEntry(settings, isEmpty);
  });
  return writeOldConfiguration(JSON.parse(steps.at(-1)!.json) as Record<string, unknown>, diffIds, history);
}
