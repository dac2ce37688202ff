import type { Engine } from '../../engine.ts';
import { archiveSource } from '../../layers/archive-source.ts';
import { TAR_END, tarHeader, tarPadding } from '../../layers/tar/tar-write.ts';
import { EngineError } from '../../lib/errors.ts';
import { isIndex, OCI_INDEX, readManifest, type Descriptor } from '../../registry/manifests.ts';
import { fitsPlatform, type Platform } from '../configuration/platform.ts';
import { emitImageEvent } from '../event.ts';
import { descriptorOf, type ImageDocument } from '../manifests/documents.ts';
import { plainDocument } from '../manifests/plain-manifest.ts';
import { familiarReference, type Reference } from '../names/reference.ts';
import { describe } from '../present.ts';
import type { Image } from '../store.ts';
import { bytesOf, textFile } from './archive-parts.ts';

type Needs = Pick<Engine, 'images' | 'layers' | 'blobs' | 'archives' | 'events'>;
type Chosen = Readonly<{ image: Image; names: readonly Reference[]; target: string | undefined }>;

const REF_NAME = 'org.opencontainers.image.ref.name';
const IMAGE_NAME = 'io.containerd.image.name';

/** Whether the images need a layout, because one of them has several platforms. */
export function needsLayout({ images }: Pick<Engine, 'images'>, chosen: readonly Chosen[]): boolean {
  return chosen.some(({ target }) => target !== undefined && images.documents.entriesOf(target).length > 0);
}

/**
 * The images as an OCI layout, with every platform that is here in the form that its manifest names, and `manifest.json` for
 * programs that know no indexes. `platforms`: those alone.
 */
export async function* saveLayout(
  engine: Needs,
  chosen: readonly Chosen[],
  platforms: readonly Platform[],
): AsyncGenerator<Buffer> {
  using leases = new DisposableStack();
  const written = new Set<string>();
  const manifests: object[] = [];
  const docker: object[] = [];
  for (const each of chosen) {
    for (const image of engine.images.withPlatforms(each.image)) {
      for (const chainId of image.layers) leases.use(engine.layers.lease(chainId)); // it may be removed from here on
    }
  }
  yield* textFile('oci-layout', '{"imageLayoutVersion":"1.0.0"}');
  for (const each of chosen) {
    const part = exported(engine, each, platforms);
    for (const document of part.documents) yield* once(written, document.digest, document.text);
    for (const { image, document } of part.images) yield* imageBlobs(engine, image, document, written);
    const described = describe(part.top);
    const named = each.names.map((name) => ({ ...described, annotations: annotationsOf(name, described.annotations) }));
    for (const entry of named.length > 0 ? named : [described]) manifests.push(entry);
    const first = part.images.find(({ image }) => image.id === each.image.id) ?? part.images[0]!;
    docker.push({
      Config: pathOf(first.image.id),
      RepoTags: each.names.length > 0 ? each.names.map(familiarReference) : null,
      Layers: readManifest(first.document.text, first.document.digest).layers.map(({ digest }) => pathOf(digest)),
    });
    emitImageEvent(engine, 'save', each.image);
  }
  yield* textFile('index.json', JSON.stringify({ schemaVersion: 2, mediaType: OCI_INDEX, manifests }));
  yield* textFile('manifest.json', JSON.stringify(docker));
  yield TAR_END;
}

type Exported = {
  top: Descriptor;
  documents: readonly ImageDocument[];
  images: readonly { image: Image; document: ImageDocument }[];
};

/** An index with its platforms that are here; of one wanted platform its manifest alone, as in dockerd. */
function exported(engine: Needs, { image, target }: Chosen, platforms: readonly Platform[]): Exported {
  const { images } = engine;
  const isWanted = (each: Image): boolean =>
    platforms.length === 0 || platforms.some((platform) => fitsPlatform(platform, each));
  const below = target === undefined ? [] : images.documents.manifestsBelow(target);
  const here = below.flatMap((entry) => {
    const document = images.documents.get(entry.digest);
    const described = document?.imageId === undefined ? undefined : images.get(document.imageId);
    if (document === undefined || described === undefined || !isWanted(described)) return [];
    return hasBlobs(engine, described, document) ? [{ image: described, document, entry }] : [];
  });
  if (here.length === 0 || target === undefined) return plainly(engine, image);
  if (platforms.length === 1) return { top: here[0]!.entry, documents: [], images: here.slice(0, 1) };
  const top = images.documents.get(target)!;
  const isAll = platforms.length === 0;
  return { top: descriptorOf(top), documents: documentsBelow(engine, top, isAll), images: here };
}

/** The layers in another form than their manifest names, or without a manifest. */
function plainly(engine: Needs, image: Image): Exported {
  const document = plainDocument(engine, image);
  if (document === undefined) throw new EngineError('failed', `the image ${image.id} has to be loaded again for this`);
  return { top: descriptorOf(document), documents: [], images: [{ image, document }] };
}

/** Indexes, and attestations with their parts; the manifests of images go with these. */
function documentsBelow({ images }: Needs, top: ImageDocument, withAttestations: boolean): ImageDocument[] {
  const found = new Map([[top.digest, top]]);
  for (const document of found.values()) {
    for (const digest of images.documents.partsOf(document.digest)) {
      const part = images.documents.get(digest);
      if (part === undefined || part.imageId !== undefined) continue;
      if (withAttestations || isIndex(part.mediaType)) found.set(digest, part);
    }
  }
  return [...found.values()];
}

function hasBlobs({ layers, blobs }: Needs, image: Image, { text, digest }: ImageDocument): boolean {
  return readManifest(text, digest).layers.every((descriptor, at) => {
    const layer = layers.get(image.layers[at] ?? '');
    if (layer === undefined || archiveSource({ layers, blobs }, layer) === undefined) return false;
    return layer.diffId === descriptor.digest || (layer.blob === descriptor.digest && blobs.isWhole(layer.blob));
  });
}

async function* imageBlobs(
  engine: Needs,
  image: Image,
  document: ImageDocument,
  written: Set<string>,
): AsyncGenerator<Buffer> {
  yield* once(written, document.digest, document.text);
  yield* once(written, image.id, engine.images.jsonOf(image.id));
  for (const [at, { digest, size }] of readManifest(document.text, document.digest).layers.entries()) {
    if (written.has(digest)) continue;
    written.add(digest);
    const layer = engine.layers.get(image.layers[at]!)!;
    const source = archiveSource(engine, layer);
    if (source === undefined) throw new EngineError('failed', `a layer of the image ${image.id} was lost meanwhile`);
    yield tarHeader({ name: pathOf(digest), type: 'file', sizeBytes: size, modifiedAt: new Temporal.Instant(0n) });
    yield* layer.diffId === digest ? engine.archives.read(source) : bytesOf(engine.blobs.path(digest));
    yield tarPadding(size);
  }
}

function* once(written: Set<string>, digest: string, text: string): Generator<Buffer> {
  if (written.has(digest)) return;
  written.add(digest);
  yield* textFile(pathOf(digest), text);
}

function annotationsOf(name: Reference, before: Record<string, string> | undefined): Record<string, string> {
  return { ...before, [IMAGE_NAME]: `${name.repository}:${name.tag}`, [REF_NAME]: name.tag ?? '' };
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}
