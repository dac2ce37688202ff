import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import type { IndexEntry } from '../../registry/manifests.ts';
import { checkPlatform, fitsPlatform, HOST_PLATFORM, notProvided, type Platform } from '../configuration/platform.ts';
import type { ImageDocument } from '../manifests/documents.ts';
import { manifestSummaries, type ManifestSummary } from '../manifests/summaries.ts';
import type { Image } from '../store.ts';

type Needs = Pick<Engine, 'blobs' | 'images' | 'imageUsage' | 'layers'>;

/** The part of an image that a push sends: all of its index, one manifest, or an image that has none. */
export type Choice =
  | Readonly<{ kind: 'index'; document: ImageDocument }>
  | Readonly<{
      kind: 'manifest';
      document: ImageDocument;
      image: Image;
      insteadOf: ImageDocument | undefined;
      entry: IndexEntry;
    }>
  | Readonly<{ kind: 'image'; image: Image }>;

/**
 * An index is sent if all of it is here, else the one manifest that is: with several of them this machine's. With a platform
 * always its manifest alone.
 */
export function choosePushed(
  engine: Needs,
  { ref, image, target }: { ref: string; image: Image; target: string | undefined },
  platform: Platform | undefined,
): Choice {
  const { documents } = engine.images;
  const document = target === undefined ? undefined : documents.get(target);
  if (document === undefined) {
    checkPlatform(image, ref, platform);
    return { kind: 'image', image };
  }
  const summaries = manifestSummaries(engine, image, target);
  const isIndex = summaries[0]?.entry.digest !== target;
  const here = summaries.filter((each) => each.kind === 'image' && each.isAvailable);
  if (platform === undefined && isIndex && summaries.every(({ isAvailable }) => isAvailable)) {
    return { kind: 'index', document };
  }
  const [chosen, ...others] = wantedOf(here, platform);
  if (chosen === undefined) {
    if (platform !== undefined) notProvided(ref, platform);
    // A lost layer is reported by the push.
    return { kind: 'image', image };
  }
  if (others.length > 0) {
    throw new EngineError('conflict', 'multiple matching manifests found but no specific platform requested');
  }
  const manifest = documents.get(chosen.entry.digest)!;
  const described = engine.images.get(manifest.imageId!)!;
  const insteadOf = platform === undefined && isIndex ? document : undefined;
  return { kind: 'manifest', document: manifest, image: described, insteadOf, entry: chosen.entry };
}

function wantedOf(here: readonly ManifestSummary[], platform: Platform | undefined): readonly ManifestSummary[] {
  if (platform !== undefined) return here.filter((each) => isOf(each, platform));
  const ofHost = here.filter((each) => isOf(each, HOST_PLATFORM));
  return ofHost.length > 0 ? ofHost.slice(0, 1) : here;
}

function isOf(summary: ManifestSummary, platform: Platform): boolean {
  return summary.kind === 'image' && fitsPlatform(platform, summary.platform);
}
