import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { Descriptor, ImageManifest } from '../../registry/manifests.ts';
import type { OldManifest } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { parseImage } from '../configuration/image-json.ts';
import { checkPlatform, fitsPlatform, type Platform } from '../configuration/platform.ts';
import { familiarReference, type Reference } from '../names/reference.ts';
import type { Report } from '../progress.ts';
import type { Image } from '../store.ts';
import { oldConfiguration, oldLayers } from './old-image.ts';
import { manifestFor } from './platform.ts';
import { pullLayers } from './pull-layers.ts';

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
  const found = told === undefined ? undefined : wholeImage(engine, { repository: reference.repository, digest: told });
  const known = found !== undefined && (platform === undefined || fitsPlatform(platform, found)) ? found : undefined;
  const from = { status: `Pulling from ${repository.path}`, id: idOf(reference) };
  if (known !== undefined) {
    report(from);
    const isNew = name(engine, known.id, reference, told!);
    report({ status: `Digest: ${told}` });
    return isNew;
  }
  const manifest = await repository.manifest(told ?? reference.tag!, signal);
  report(from);
  const id = await bring(
    engine,
    repository,
    await manifestFor(repository, manifest, { platform, signal }),
    { report, signal, platform, fullName: reference.repository },
    (id) => name(engine, id, reference, manifest.digest),
  );
  report({ status: `Digest: ${manifest.digest}` });
  return id;
}

/** A digest pull shows the whole name, others the tag. */
function idOf(reference: Reference): string {
  return reference.digest === undefined ? reference.tag! : familiarReference(reference);
}

/** An image with all of its files. */
function wholeImage({ blobs, images, layers }: Needs, reference: Reference): Image | undefined {
  const image = images.named(reference);
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

function checkedImage(json: string): ReturnType<typeof parseImage> {
  const image = parseImage(parseJson(json));
  if (image.os !== '' && image.os !== 'linux') throw new RegistryError('operating system is not supported');
  return image;
}

/** Gives the image the name that was asked for, and the one with its digest; whether it had the former. */
function name({ images }: Needs, id: string, { repository, tag, digest }: Reference, found: string): boolean {
  const asked = digest === undefined ? { repository, tag } : { repository, digest };
  const isNew = images.named(asked)?.id !== id;
  if (isNew) images.refer(asked, id);
  const byDigest = { repository, digest: found };
  if (images.named(byDigest)?.id !== id) images.refer(byDigest, id);
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
