import { Type, type Static } from 'typebox';

import { badArchive } from '../../layers/tar/tar-header.ts';
import { RegistryError } from '../../registry/errors.ts';
import { isIndex, isManifest, readIndex, readManifest, type IndexEntry } from '../../registry/manifests.ts';
import { fitsPlatform, HOST_PLATFORM, platformText, type Platform } from '../configuration/platform.ts';
import { isPseudoImage } from '../manifests/attestation.ts';
import { MAX_INDEX_DEPTH, type ImageDocument } from '../manifests/documents.ts';
import type { Reference } from '../names/reference.ts';
import type { ArchiveFile, ArchiveFiles } from './archive-files.ts';
import { imageOf, namesOf, type ArchivedImage } from './archived-image.ts';

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const Descriptor = Type.Object({
  mediaType: Nullable(Type.String()),
  digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
  size: Nullable(Type.Integer()),
  annotations: Nullable(Type.Record(Type.String(), Type.String())),
  platform: Nullable(Type.Object({ os: Type.String(), architecture: Type.String(), variant: Nullable(Type.String()) })),
});
type Descriptor = Static<typeof Descriptor>;

const Layout = Type.Object({ manifests: Type.Array(Descriptor, { maxItems: 1000 }) });

/** The parts of attestations are kept in memory: an index with more loses them. */
const MAX_PART_BYTES = 1024 * 1024;
const MAX_PARTS_BYTES = 4 * 1024 * 1024;
const MAX_IMAGES = 1000;

/** Whether the layout has an image of several platforms, which no other format describes. */
export async function hasIndex(files: ArchiveFiles): Promise<boolean> {
  if (!files.has('index.json')) return false;
  const { manifests } = await files.json(files.get('index.json'), Layout);
  return manifests.some(({ mediaType, digest }) => isIndex(mediaType ?? '') && files.has(pathOf(digest)));
}

/**
 * The images of an OCI layout: of an index with a name all platforms that the archive has, of others one. None if it lacks the
 * wanted platforms.
 */
export async function readOciLayout(files: ArchiveFiles, platforms: readonly Platform[]): Promise<ArchivedImage[]> {
  const { manifests } = await files.json(files.get('index.json'), Layout);
  const images: ArchivedImage[] = [];
  for (const descriptor of manifests) {
    // The outermost index lists separate images; a nested index lists the platforms of one image.
    if (manifests.length > 1 && !isWanted(descriptor, platforms.length > 0 ? platforms : [HOST_PLATFORM])) continue;
    const reader = new LayoutReader(files);
    await reader.add(descriptor, 0);
    for (const image of await reader.images(descriptor, namesOf(descriptor), platforms)) images.push(image);
    if (images.length > MAX_IMAGES) throw badArchive(`more than ${MAX_IMAGES} images`);
  }
  if (images.length > 0 || platforms.length > 0) return images;
  throw badArchive(`no image for ${platformText(HOST_PLATFORM)} found`);
}

type Found = { entry: Descriptor; document: ImageDocument };

/** Reads what is below one descriptor of a layout. */
class LayoutReader {
  readonly #files: ArchiveFiles;
  readonly #documents = new Map<string, ImageDocument>();
  readonly #found: Found[] = [];
  #partsBytes = 0;

  constructor(files: ArchiveFiles) {
    this.#files = files;
  }

  async add(entry: Descriptor, depth: number): Promise<void> {
    if (depth > MAX_INDEX_DEPTH) throw badArchive('too many nested indexes');
    if (this.#documents.has(entry.digest)) return;
    const file = this.#files.blob(entry.digest);
    if (typeof entry.size === 'number' && entry.size !== file.sizeBytes) {
      throw badArchive(`${JSON.stringify(file.path)} has ${file.sizeBytes} bytes; its index says ${entry.size}`);
    }
    const document = await this.#document(entry, file);
    if (isPseudoImage(entry)) return await this.#addAttestation(document);
    this.#documents.set(entry.digest, document);
    if (!isIndex(document.mediaType)) return void this.#found.push({ entry, document });
    // An archive of one platform still has the complete index, without the blobs of other platforms.
    for (const inner of entriesOf(document))
      if (this.#files.has(pathOf(inner.digest))) await this.add(inner, depth + 1);
  }

  /** The images; the last one has the names, and the documents that these stand for. */
  async images(top: Descriptor, names: Reference[], platforms: readonly Platform[]): Promise<ArchivedImage[]> {
    const isNamed = names.length > 0 && isIndex(this.#documents.get(top.digest)?.mediaType ?? '');
    const read: ArchivedImage[] = [];
    for (const { entry, document } of this.#found) {
      const image = await this.#image(
        entry,
        document,
        isNamed ? platforms : platforms.length > 0 ? platforms : this.#only(),
      );
      if (image === undefined) continue;
      this.#documents.set(document.digest, { ...document, imageId: image.id });
      read.push(image);
      if (!isNamed) break;
    }
    const last = read.at(-1);
    if (last === undefined) return [];
    const others = read.slice(0, -1).map((image): ArchivedImage => ({ ...image, isPart: true }));
    const documents = [...this.#documents.values()].filter(
      ({ mediaType, imageId, digest }) =>
        !isManifest(mediaType) ||
        imageId !== undefined ||
        !this.#found.some(({ document }) => document.digest === digest),
    );
    return [...others, { ...last, names, target: top.digest, documents }];
  }

  /** This machine's platform where one of several has to be chosen. */
  #only(): readonly Platform[] {
    return this.#found.length > 1 || this.#documents.size > 1 ? [HOST_PLATFORM] : [];
  }

  async #image(
    entry: Descriptor,
    document: ImageDocument,
    platforms: readonly Platform[],
  ): Promise<ArchivedImage | undefined> {
    if (!isWanted(entry, platforms)) return undefined;
    const { config, layers } = refusing(() => readManifest(document.text, document.digest));
    const image = await imageOf(
      this.#files,
      this.#files.blob(config.digest),
      layers.map(({ digest }) => this.#files.blob(digest)),
    );
    if (image.platform.os !== '' && image.platform.os !== 'linux') return undefined;
    return isWanted({ ...entry, platform: image.platform }, platforms) ? image : undefined;
  }

  /** Kept with all of its parts, or not at all. */
  async #addAttestation(document: ImageDocument): Promise<void> {
    const { config, layers } = refusing(() => readManifest(document.text, document.digest));
    const parts: ImageDocument[] = [document];
    for (const { digest, mediaType } of [config, ...layers]) {
      if (!this.#files.has(pathOf(digest))) return;
      const file = this.#files.blob(digest);
      this.#partsBytes += file.sizeBytes;
      if (file.sizeBytes > MAX_PART_BYTES || this.#partsBytes > MAX_PARTS_BYTES) return;
      parts.push({ digest, mediaType: mediaType ?? '', text: await this.#files.text(file) });
    }
    for (const part of parts) this.#documents.set(part.digest, part);
  }

  async #document({ digest, mediaType }: Descriptor, file: ArchiveFile): Promise<ImageDocument> {
    const text = await this.#files.text(file);
    const { mediaType: own } = await this.#files.json(file, Type.Object({ mediaType: Nullable(Type.String()) }));
    return { digest, mediaType: own ?? mediaType ?? '', text };
  }
}

function entriesOf(document: ImageDocument): readonly IndexEntry[] {
  return refusing(() => readIndex(document.text, document.digest));
}

/** A document that is wrong is a bad archive here, not a failure of a registry. */
function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RegistryError) throw badArchive(error.message, error);
    throw error;
  }
}

function isWanted({ platform }: Pick<Descriptor, 'platform'>, platforms: readonly Platform[]): boolean {
  return !platform || platforms.length === 0 || platforms.some((wanted) => fitsPlatform(wanted, platform));
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}
