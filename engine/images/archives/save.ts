import type { Engine } from '../../engine.ts';
import { archiveSource } from '../../layers/archive-source.ts';
import { sha256 } from '../../layers/chain-id.ts';
import type { Layer } from '../../layers/records.ts';
import { TAR_END, tarHeader, tarPadding } from '../../layers/tar/tar-write.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Platform } from '../configuration/platform.ts';
import { emitImageEvent } from '../event.ts';
import { familiarName, familiarReference, parseReference, type Reference } from '../names/reference.ts';
import type { Image, ImageStore } from '../store.ts';
import { EPOCH, textFile } from './archive-parts.ts';
import { needsLayout, saveLayout } from './save-layout.ts';

type Needs = Pick<Engine, 'images' | 'layers' | 'blobs' | 'archives' | 'events'>;

/** An image with the names that go into the archive, and the document that they stand for. */
type Chosen = { image: Image; names: Reference[]; target: string | undefined };

const VERSION = '1.0';

/**
 * The images that the refs name: a name without a tag selects the whole repository, an id selects the image without its
 * names.
 */
export function chooseImages(
  engine: { images: ImageStore },
  refs: readonly string[],
  platforms: readonly Platform[] = [],
): Chosen[] {
  const chosen = new Map<string, Chosen>();
  const add = (image: Image, names: readonly Reference[], target: string | undefined): void => {
    const key = `${image.id} ${target ?? ''}`;
    const before = chosen.get(key)?.names ?? [];
    const known = new Set(before.map(familiarReference));
    const added = names.filter((name) => !known.has(familiarReference(name)));
    chosen.set(key, { image, names: [...before, ...added], target });
  };
  for (const ref of refs) {
    const tagged = namesInRepository(engine.images, ref);
    for (const { image, tag, repository, target } of tagged) add(image, [{ repository, tag }], target);
    if (tagged.length > 0) continue;
    const image = engine.images.find(ref);
    for (const platform of platforms) checkProvided(engine.images, ref, platform);
    const { repository, tag } = engine.images.isId(image, ref) ? {} : parseReference(ref);
    const names = repository !== undefined && tag !== undefined ? [{ repository, tag }] : [];
    add(image, names, engine.images.targetOf(ref, image));
  }
  return [...chosen.values()];
}

/** Throws `notFound` if an image has no such platform. */
function checkProvided(images: ImageStore, ref: string, platform: Platform): void {
  try {
    images.find(ref, platform);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `no suitable export target found: ${error.message}`, { cause: error });
  }
}

type Named = ReturnType<ImageStore['tagsIn']>[number] & { repository: string };

/** A name without a tag selects all images of the repository, with or without a `latest`. */
function namesInRepository(images: ImageStore, ref: string): Named[] {
  if (/^(?:sha256:[0-9a-f]*|[0-9a-f]{64})$/.test(ref)) return [];
  const { repository, tag, digest } = parseReference(ref);
  if (tag !== undefined || digest !== undefined) return [];
  return images.tagsIn(repository).map((each) => ({ ...each, repository }));
}

/**
 * The images as an archive that every version of the API can load: a folder per layer, `manifest.json`, and
 * `repositories` if there are names. The layers are the same bytes that were received.
 */
export async function* saveImages(
  engine: Needs,
  chosen: readonly Chosen[],
  platforms: readonly Platform[] = [],
): AsyncGenerator<Buffer> {
  if (needsLayout(engine, chosen)) return yield* saveLayout(engine, chosen, platforms);
  using leases = new DisposableStack();
  // From here on the images may be removed.
  for (const { image } of chosen) for (const chainId of image.layers) leases.use(engine.layers.lease(chainId));
  const configurations = new Map(chosen.map(({ image }) => [image.id, engine.images.jsonOf(image.id)]));
  const written = new Set<string>();
  const ids = new Set(chosen.map(({ image }) => image.id));
  const manifest = [];
  const repositories = new Map<string, Map<string, string>>();
  for (const { image, names } of chosen) {
    const folders = foldersOf(image);
    for (const [index, folder] of folders.entries()) {
      if (written.has(folder)) continue;
      written.add(folder);
      const layer = engine.layers.get(image.layers[index]!)!;
      const isTop = index === folders.length - 1;
      const json = layerJson(folder, folders[index - 1], isTop ? image : undefined);
      yield* layerFolder(engine, { folder, json, layer, image });
    }
    const config = `${image.id.slice('sha256:'.length)}.json`;
    yield* textFile(config, configurations.get(image.id)!, image.createdAt);
    manifest.push({
      Config: config,
      RepoTags: names.length > 0 ? names.map(familiarReference) : null,
      Layers: folders.map((folder) => `${folder}/layer.tar`),
      ...(image.parentId !== undefined && ids.has(image.parentId) && { Parent: image.parentId }),
    });
    for (const { repository, tag } of names) {
      const tags = repositories.getOrInsertComputed(familiarName(repository), () => new Map<string, string>());
      if (folders.length > 0) tags.set(tag!, folders.at(-1)!);
    }
    emitImageEvent(engine, 'save', image);
  }
  yield* textFile('manifest.json', JSON.stringify(manifest), EPOCH);
  const named = Object.fromEntries(Array.from(repositories, ([name, tags]) => [name, Object.fromEntries(tags)]));
  if (repositories.size > 0) yield* textFile('repositories', JSON.stringify(named), EPOCH);
  yield TAR_END;
}

/** The topmost folder contains the image's settings, so each image has its own; the folders below are shared. */
function foldersOf(image: Image): string[] {
  return image.layers.map((chainId, index) => {
    const isTop = index === image.layers.length - 1;
    return (isTop ? sha256(`${image.id} ${chainId}`) : chainId).slice('sha256:'.length);
  });
}

function layerJson(id: string, parent: string | undefined, image: Image | undefined): string {
  return JSON.stringify({
    id,
    ...(parent !== undefined && { parent }),
    created: (image?.createdAt ?? EPOCH).toString(),
    container_config: image?.wireContainerConfig ?? {},
    ...(image !== undefined && {
      config: image.wireConfig,
      architecture: image.architecture,
      os: image.os,
      ...(image.author !== '' && { author: image.author }),
      ...(image.comment !== '' && { comment: image.comment }),
    }),
  });
}

type LayerFolder = { folder: string; json: string; layer: Layer; image: Image };

async function* layerFolder(engine: Needs, { folder, json, layer, image }: LayerFolder): AsyncGenerator<Buffer> {
  const modifiedAt = image.createdAt ?? EPOCH;
  yield tarHeader({ name: `${folder}/`, type: 'directory', modifiedAt });
  yield* textFile(`${folder}/VERSION`, VERSION, modifiedAt);
  yield* textFile(`${folder}/json`, json, modifiedAt);
  const source = archiveSource(engine, layer);
  if (source === undefined) throw new EngineError('failed', `a layer of the image ${image.id} was lost meanwhile`);
  const sizeBytes = layer.archiveBytes ?? (await bytesOf(engine.archives.read(source)));
  yield tarHeader({ name: `${folder}/layer.tar`, type: 'file', sizeBytes, modifiedAt });
  yield* engine.archives.read(source); // plain, because the format knows no compression
  yield tarPadding(sizeBytes);
}

/** Bytes of a layer that an older version received: the header needs the size beforehand. */
async function bytesOf(archive: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const chunk of archive) bytes += chunk.length;
  return bytes;
}
