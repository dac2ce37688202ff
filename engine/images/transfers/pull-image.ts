import type { Blobs } from '../../layers/blobs.ts';
import type { Layers } from '../../layers/layers.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyLock } from '../../lib/key-lock.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { ImageManifest } from '../../registry/manifests.ts';
import type { Repository } from '../../registry/repository.ts';
import { parseImage } from '../configuration/image-json.ts';
import { familiarReference, type Reference } from '../names/reference.ts';
import type { Report } from '../progress.ts';
import type { Image, ImageStore } from '../store.ts';
import type { LayerDownloads } from './layer-downloads.ts';
import type { LayerSources } from './layer-sources.ts';
import { manifestForHost } from './platform.ts';
import { pullLayers } from './pull-layers.ts';

export type Needs = {
  archives: Archives;
  blobs: Blobs;
  clock: Clock;
  images: ImageStore;
  layerDownloads: LayerDownloads;
  layerSources: LayerSources;
  layers: Layers;
  locks: KeyLock;
};

type Options = { report: Report; signal: AbortSignal };

/** Pulls the image of one tag or digest; whether the name is new or has moved. */
export async function pullImage(
  engine: Needs,
  repository: Repository,
  reference: Reference,
  { report, signal }: Options,
): Promise<boolean> {
  const told = reference.digest ?? (await repository.digestOf(reference.tag!, signal));
  const known = told === undefined ? undefined : wholeImage(engine, { repository: reference.repository, digest: told });
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
    await manifestForHost(repository, manifest, signal),
    { report, signal, fullName: reference.repository },
    (id) => name(engine, id, reference, manifest.digest),
  );
  report({ status: `Digest: ${manifest.digest}` });
  return id;
}

/** A digest pull shows the whole name, others the tag. */
function idOf(reference: Reference): string {
  return reference.digest === undefined ? reference.tag! : familiarReference(reference);
}

/** An image of which no file is missing. */
function wholeImage({ blobs, images, layers }: Needs, reference: Reference): Image | undefined {
  const image = images.named(reference);
  const isWhole = image?.layers.every((chainId) => {
    const layer = layers.get(chainId);
    return layer !== undefined && layers.folders.isWhole(layer) && blobs.has(layer.blob);
  });
  return isWhole === true ? image : undefined;
}

/** Nothing has a name before all of it is here and on the disk. */
async function bring(
  engine: Needs,
  repository: Repository,
  manifest: ImageManifest,
  { report, signal, fullName }: Options & { fullName: string },
  nameIt: (id: string) => boolean,
): Promise<boolean> {
  const json = await repository.config(manifest.config, signal);
  const { diffIds, os } = parseImage(parseJson(json));
  if (os !== '' && os !== 'linux') throw new RegistryError('operating system is not supported');
  if (diffIds.length !== manifest.layers.length) {
    throw new RegistryError("layers from manifest don't match image configuration");
  }
  using leases = new DisposableStack();
  await pullLayers(engine, repository, { descriptors: manifest.layers, diffIds }, { leases, report, signal });
  await engine.blobs.sync();
  signal.throwIfAborted();
  let isNew = false;
  for (const [index, { digest, size, mediaType }] of manifest.layers.entries()) {
    if (!mediaType?.endsWith('gzip')) continue; // a push has gzip only
    engine.layerSources.remember(diffIds[index]!, { repository: fullName, digest, sizeBytes: size });
  }
  engine.images.insert(manifest.config.digest, json, ({ id }) => {
    isNew = nameIt(id);
  });
  return isNew;
}

/** Gives the image the name that was asked for, and the one with its digest; whether it had the former. */
function name({ images, clock }: Needs, id: string, { repository, tag, digest }: Reference, found: string): boolean {
  const asked = digest === undefined ? { repository, tag } : { repository, digest };
  const isNew = images.named(asked)?.id !== id;
  if (isNew) images.refer(asked, id, clock.now());
  const byDigest = { repository, digest: found };
  if (images.named(byDigest)?.id !== id) images.refer(byDigest, id, clock.now());
  return isNew;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RegistryError('the image configuration is not JSON', { cause: error });
  }
}
