import { Type, type Static } from 'typebox';

import type { Database } from '../../db/database.ts';
import { createTable } from '../../db/migration-sql.ts';
import { RecordTable } from '../../db/table.ts';
import {
  isIndex,
  isManifest,
  readIndex,
  readManifest,
  type Descriptor,
  type IndexEntry,
  type Manifest,
} from '../../registry/manifests.ts';

/** A document of a registry, byte for byte: an index, the manifest of one platform, or a part of an attestation. */
const ImageDocument = Type.Object({
  digest: Type.String(),
  mediaType: Type.String(),
  text: Type.String(),
  /** The image that a manifest describes. */
  imageId: Type.Optional(Type.String()),
});
export type ImageDocument = Readonly<Static<typeof ImageDocument>>;

/** Indexes in indexes. */
export const MAX_INDEX_DEPTH = 4;

/** The documents behind the names of images, by their digests. Each stays while a name or a kept index needs it. */
export class Documents {
  readonly #db: Database;
  readonly #table;
  readonly #entries = new WeakMap<ImageDocument, readonly IndexEntry[]>();
  /** The kept documents that list a digest; undefined after a change. */
  #parents: Map<string, Set<string>> | undefined;

  constructor(db: Database) {
    this.#db = db;
    db.migrate('image_documents', [createTable('image_documents')]);
    this.#table = new RecordTable(db, {
      name: 'image_documents',
      schema: ImageDocument,
      id: ({ digest }) => digest,
      groups: { image: ({ imageId }) => imageId },
      check: (record) => void this.#entriesOf(record),
    });
  }

  get(digest: string): ImageDocument | undefined {
    return this.#table.get(digest);
  }

  all(): readonly ImageDocument[] {
    return this.#table.all();
  }

  /** The manifests of an image: several where they differ in the compression of layers. */
  ofImage(imageId: string): readonly ImageDocument[] {
    return this.#table.in('image', imageId);
  }

  /** A manifest of an image as an index describes it, or as it describes itself. */
  manifestOf(imageId: string): IndexEntry | undefined {
    const [manifest] = this.ofImage(imageId);
    if (manifest === undefined) return undefined;
    const { digest } = manifest;
    const entries = [...this.parentsOf(digest)].flatMap((index) => this.entriesOf(index));
    return entries.find((entry) => entry.digest === digest) ?? descriptorOf(manifest);
  }

  /** The entries of an index; none for other documents. */
  entriesOf(digest: string): readonly IndexEntry[] {
    const document = this.get(digest);
    return document === undefined ? [] : this.#entriesOf(document);
  }

  /** The manifests below a document in the order of their index, with those of nested indexes; a manifest is its own. */
  manifestsBelow(digest: string): IndexEntry[] {
    const found = new Map<string, IndexEntry>();
    this.#collect(digest, found, new Set());
    return [...found.values()];
  }

  /** The images below a document, in the order of their index. */
  imagesBelow(digest: string): string[] {
    const ids = this.manifestsBelow(digest).flatMap((entry) => this.get(entry.digest)?.imageId ?? []);
    return [...new Set(ids)];
  }

  /** The digests that a document lists itself: entries of an index, or the configuration and the layers of an attestation. */
  partsOf(digest: string): string[] {
    const document = this.get(digest);
    if (document === undefined) return [];
    return this.#partsOf(document).map((part) => part.digest);
  }

  /** The kept documents that list a digest. */
  parentsOf(digest: string): ReadonlySet<string> {
    this.#parents ??= this.#findParents();
    return this.#parents.get(digest) ?? new Set();
  }

  /** All documents from which an image can be reached: its manifests, and the indexes above them. */
  above(imageId: string): ReadonlySet<string> {
    const found = new Set(this.ofImage(imageId).map(({ digest }) => digest));
    for (const digest of found) for (const index of this.parentsOf(digest)) found.add(index);
    return found;
  }

  keep(document: ImageDocument): void {
    const known = this.get(document.digest);
    if (known !== undefined && (document.imageId === undefined || known.imageId === document.imageId)) return;
    this.#forgetParents();
    this.#table.put(document);
  }

  delete(digest: string): void {
    this.#forgetParents();
    this.#table.delete(digest);
  }

  #entriesOf(document: ImageDocument): readonly IndexEntry[] {
    if (!isIndex(document.mediaType)) return [];
    const known = this.#entries.get(document);
    if (known !== undefined) return known;
    const entries = readIndex(document.text, document.digest);
    this.#entries.set(document, entries);
    return entries;
  }

  /** The parts of an image's manifest are an image, not documents. */
  #partsOf(document: ImageDocument): readonly Descriptor[] {
    const { digest, mediaType, text, imageId } = document;
    if (isIndex(mediaType)) return this.#entriesOf(document);
    if (imageId !== undefined || !isManifest(mediaType)) return [];
    const { config, layers } = readManifest(text, digest);
    return [config, ...layers];
  }

  #collect(digest: string, found: Map<string, IndexEntry>, above: ReadonlySet<string>): void {
    const document = this.get(digest);
    if (document === undefined || above.has(digest) || above.size > MAX_INDEX_DEPTH) return;
    if (!isIndex(document.mediaType)) return void found.set(digest, found.get(digest) ?? descriptorOf(document));
    for (const entry of this.#entriesOf(document)) {
      const inner = this.get(entry.digest);
      if (inner !== undefined && isIndex(inner.mediaType)) {
        this.#collect(entry.digest, found, new Set([...above, digest]));
      } else if (!found.has(entry.digest)) {
        found.set(entry.digest, entry);
      }
    }
  }

  #findParents(): Map<string, Set<string>> {
    const parents = new Map<string, Set<string>>();
    for (const document of this.#table.values()) {
      for (const { digest } of this.#partsOf(document)) {
        parents.getOrInsertComputed(digest, () => new Set<string>()).add(document.digest);
      }
    }
    return parents;
  }

  #forgetParents(): void {
    this.#parents = undefined;
    this.#db.onRollback(() => (this.#parents = undefined));
  }
}

export function descriptorOf({ digest, mediaType, text }: ImageDocument): Required<Descriptor> {
  return { mediaType, digest, size: Buffer.byteLength(text) };
}

/** A document as it is stored; undefined for a manifest of schema 1, whose digest is not that of its bytes. */
export function documentOf(manifest: Manifest, imageId?: string): ImageDocument | undefined {
  if ('old' in manifest) return undefined;
  const { digest, mediaType, bytes } = manifest;
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  return { digest, mediaType, text, ...(imageId !== undefined && { imageId }) };
}
