import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { RegistryError } from '../../registry/errors.ts';
import { isIndex, type Descriptor, type ImageManifest, type Manifest } from '../../registry/manifests.ts';
import type { OldManifest } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { parseNewImage } from '../configuration/image-json.ts';
import { checkPlatform, HOST_PLATFORM, type Platform } from '../configuration/platform.ts';
import { documentOf } from '../manifests/documents.ts';
import { familiarReference, type Reference } from '../names/reference.ts';
import type { Report } from '../progress/progress.ts';
import type { Image } from '../store.ts';
import { pullLayers } from './layers/pull-layers.ts';
import { oldConfiguration, oldLayers } from './old-image.ts';
import { manifestFor } from './platform.ts';

export type Needs = Pick<
  Engine,
  'archives' | 'blobs' | 'clock' | 'images' | 'layerDownloads' | 'layerSources' | 'layers' | 'locks'
>;

type Options = {
  report: Report;
  signal: AbortSignal;
  /** Undefined: this machine's. */
  platform?: Platform | undefined;
};

/** Pulls the image of one tag or digest; whether the name is new or has moved. */
export async function pullImage(
  engine: Needs,
  repository: Repository,
  reference: Reference,
  { report, signal, platform }: Options,
): Promise<boolean> {
  const told = reference.digest ?? (await repository.digestOf(reference.tag!, signal));
  const known = told === undefined ? undefined : wholeImage(engine, reference.repository, told, platform);
  const from = { status: `Pulling from ${repository.path}`, id: idOf(reference) };
  if (known !== undefined) {
    report(from);
    const isNew = name(engine, known.id, reference, { digest: told!, path: [] });
    report({ status: `Digest: ${told}` });
    return isNew;
  }
  const manifest = await repository.manifest(told ?? reference.tag!, signal);
  report(from);
  const chosen = await manifestFor(repository, manifest, { platform, signal });
  const isNew = await bring(
    engine,
    repository,
    chosen.manifest,
    { report, signal, platform, fullName: reference.repository },
    (id) => name(engine, id, reference, { digest: manifest.digest, path: chosen.path }),
  );
  report({ status: `Digest: ${manifest.digest}` });
  return isNew;
}

/** A digest pull shows the whole name, others the tag. */
function idOf(reference: Reference): string {
  return reference.digest === undefined ? reference.tag! : familiarReference(reference);
}

/** The image behind a digest, with all of its files; undefined also where an older daemon kept no document. */
function wholeImage(
  { blobs, images, layers }: Needs,
  repository: string,
  digest: string,
  platform: Platform | undefined,
): Image | undefined {
  const kept = images.documents.get(digest);
  if (kept === undefined) return undefined;
  // Another platform stands for an index as long as this machine's is missing.
  const wanted = platform ?? (isIndex(kept.mediaType) ? HOST_PLATFORM : undefined);
  const image = images.named({ repository, digest }, wanted);
  const isWhole = image?.layers.every((chainId) => {
    const layer = layers.get(chainId);
    return layer !== undefined && layers.folders.isWhole(layer) && blobs.has(layer.blob);
  });
  return isWhole === true ? image : undefined;
}

type Bringing = Options & { fullName: string };

/** Nothing has a name before all of it is here and on the disk. */
async function bring(
  engine: Needs,
  repository: Repository,
  manifest: ImageManifest | OldManifest,
  { report, signal, platform, fullName }: Bringing,
  nameIt: (id: string) => boolean,
): Promise<boolean> {
  using leases = new DisposableStack();
  const options = { leases, report, signal, platform };
  const { id, json, descriptors, diffIds } = await ('config' in manifest
    ? pullDescribed(engine, repository, manifest, options)
    : undescribed(engine, repository, manifest, options));
  await engine.blobs.sync();
  signal.throwIfAborted();
  let isNew = false;
  for (const [index, { digest, size, mediaType }] of descriptors.entries()) {
    if (!mediaType?.endsWith('gzip')) continue; // a push has gzip only
    engine.layerSources.remember(diffIds[index]!, { repository: fullName, digest, sizeBytes: size });
  }
  engine.images.insert(id, json, (image) => {
    isNew = nameIt(image.id);
  });
  return isNew;
}

type Brought = { id: string; json: string; descriptors: readonly Descriptor[]; diffIds: readonly string[] };
type Leasing = Options & { leases: DisposableStack };

/** The layers of an image that has a configuration. */
async function pullDescribed(
  engine: Needs,
  repository: Repository,
  { config, layers }: ImageManifest,
  options: Leasing,
): Promise<Brought> {
  const json = await repository.config(config, options.signal);
  const image = checkedImage(json);
  checkPlatform(image, repository.path, options.platform);
  const { diffIds } = image;
  if (diffIds.length !== layers.length) {
    throw new RegistryError("layers from manifest don't match image configuration");
  }
  await pullLayers(engine, repository, { descriptors: layers, diffIds }, options);
  return { id: config.digest, json, descriptors: layers, diffIds };
}

/** Those of one that has none; it is written when the layers are here. */
async function undescribed(
  engine: Needs,
  repository: Repository,
  { steps }: OldManifest,
  options: Leasing,
): Promise<Brought> {
  checkedImage(oldConfiguration(steps, []));
  const descriptors = await oldLayers(repository, steps, options.signal);
  const layers = await pullLayers(engine, repository, { descriptors, diffIds: undefined }, options);
  const diffIds = layers.map(({ diffId }) => diffId);
  const json = oldConfiguration(steps, diffIds);
  return { id: sha256(json), json, descriptors, diffIds };
}

function checkedImage(json: string): ReturnType<typeof parseNewImage> {
  const image = parseNewImage(parseJson(json));
  if (image.os !== '' && image.os !== 'linux') throw new RegistryError('operating system is not supported');
  return image;
}

type Origin = Readonly<{
  digest: string;
  /** The documents from that digest down to the image's manifest. */
  path: readonly Manifest[];
}>;

/** Gives the image the name that was asked for, and the one with its digest; whether the former stood for another one. */
function name({ images }: Needs, id: string, { repository, tag, digest }: Reference, origin: Origin): boolean {
  const asked = digest === undefined ? { repository, tag } : { repository, digest };
  const byDigest = { repository, digest: origin.digest };
  const before = images.named(asked);
  const target = images.namedTarget(asked);
  const documents = origin.path.flatMap(
    (each, at) => documentOf(each, at === origin.path.length - 1 ? id : undefined) ?? [],
  );
  images.keepDocuments(documents);
  const isNew = target === origin.digest ? before === undefined : target !== undefined || before?.id !== id;
  images.refer(asked, id, origin.digest);
  if (digest === undefined) images.refer(byDigest, id);
  return isNew;
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    const reason = error instanceof UnboundedJsonError ? `cannot be read: ${error.message}` : 'is not JSON';
    throw new RegistryError(`the image configuration ${reason}`, { cause: error });
  }
}
