import type { Database } from '../db/database.ts';
import type { Layers } from '../layers/layers.ts';
import { EngineError } from '../lib/errors.ts';
import type { HistoryEntry, ImageConfig } from './configuration/image-config.ts';
import { parseImage } from './configuration/image-json.ts';
import { familiarReference, parseReference, withDefaultTag, type Reference } from './names/reference.ts';
import { openImages, type ImageRecord } from './records.ts';

export type Image = Readonly<{
  /** Digest of the configuration: `sha256:…`. */
  id: string;
  config: ImageConfig;
  /** The image's `config` and `container_config`, for fields that only an inspect shows. */
  wireConfig: Readonly<Record<string, unknown>>;
  wireContainerConfig: Readonly<Record<string, unknown>>;
  /** Chain ids, base first. */
  layers: readonly string[];
  /** Digests of the uncompressed layer archives, base first. */
  diffIds: readonly string[];
  createdAt: Temporal.Instant | undefined;
  architecture: string;
  variant: string;
  os: string;
  author: string;
  comment: string;
  /** The container that it was committed from. */
  container: string;
  engineVersion: string;
  history: readonly HistoryEntry[];
  /** The parent image, if it is known and exists here. */
  parentId: string | undefined;
  sizeBytes: number;
}>;

/** The images and their names, all in memory; a change is committed before it is visible. */
export class ImageStore {
  readonly #db: Database;
  readonly #layers: Layers;
  readonly #images;
  readonly #names;
  readonly #parsed = new WeakMap<ImageRecord, Image>();

  constructor(db: Database, layers: Layers) {
    this.#db = db;
    this.#layers = layers;
    const { images, names } = openImages(db, (record) => void this.#imageOf(record));
    this.#images = images;
    this.#names = names;
  }

  /** The image a client means: by id, unique prefix of it, name with tag (default `latest`) or name with digest. */
  find(ref: string): Image {
    const byId = this.get(ref) ?? this.get(`sha256:${ref}`);
    if (byId !== undefined) return byId;
    if (/^sha256:[0-9a-f]*$/.test(ref)) return this.#byPrefix(ref) ?? notFound(ref);
    const reference = /^[0-9a-f]{64}$/.test(ref) ? undefined : withDefaultTag(parseReference(ref));
    const named = reference && this.named(reference);
    return named ?? this.#byPrefix(`sha256:${ref}`) ?? notFound(reference ? familiarReference(reference) : ref);
  }

  get(id: string): Image | undefined {
    const record = this.#images.get(id);
    return record && this.#imageOf(record);
  }

  /** The configuration byte for byte: its digest is the id. */
  jsonOf(id: string): string {
    return this.#images.get(id)?.json ?? notFound(id);
  }

  all(): readonly Image[] {
    return this.#images.all().map((record) => this.#imageOf(record));
  }

  /** The ids of all images, including those whose records cannot be decoded, so that their layers stay. */
  ids(): ReadonlySet<string> {
    return new Set([...this.#images.ids(), ...this.#images.idsSetAside()]);
  }

  /** The image with exactly this name; a digest overrides the tag. */
  named({ repository, tag, digest }: Reference): Image | undefined {
    const found = this.#names.get(nameOf(digest === undefined ? { repository, tag } : { repository, digest }));
    return found && this.get(found.imageId);
  }

  /** Whether `ref` is an image's id or a prefix of it, not a name. */
  isId(image: Image, ref: string): boolean {
    const hex = ref.startsWith('sha256:') ? ref.slice('sha256:'.length) : ref;
    return image.id.startsWith(`sha256:${hex}`);
  }

  /** An image's names in their short form, sorted: those with a tag and those with a digest. */
  referencesOf(id: string): Reference[] {
    return this.#names
      .in('image', id)
      .map(({ repository, tag, digest }) => ({ repository, tag, digest }))
      .toSorted((a, b) => (familiarReference(a) < familiarReference(b) ? -1 : 1));
  }

  /** Such as `busybox:latest`. */
  tagsOf(id: string): string[] {
    return this.referencesOf(id)
      .filter((reference) => reference.tag !== undefined)
      .map(familiarReference);
  }

  /** Such as `busybox@sha256:…`. */
  digestsOf(id: string): string[] {
    return this.referencesOf(id)
      .filter((reference) => reference.digest !== undefined)
      .map(familiarReference);
  }

  taggedAt(id: string): Temporal.Instant | undefined {
    return this.#images.get(id)?.taggedAt;
  }

  /** The images on top of this one; of undefined: those without a parent. */
  childrenOf(id: string | undefined): Image[] {
    return this.#images.in('parent', id ?? '').map((record) => this.#imageOf(record));
  }

  /**
   * Stores an image whose layers are registered, in one commit with `also`; `json` is its configuration byte for byte. An
   * existing image stays unchanged.
   */
  insert(id: string, json: string, also: (image: Image) => void): Image {
    const known = this.get(id);
    if (known !== undefined) {
      this.#db.transaction(() => also(known));
      return known;
    }
    const record = { id, json };
    const image = this.#imageOf(record);
    this.#layers.own(id, image.layers.at(-1));
    try {
      this.#db.transaction(() => {
        this.#images.put(record); // it may exist as a record that cannot be read
        also(image);
      });
    } catch (error) {
      this.#layers.release(id);
      throw error;
    }
    return image;
  }

  /** Records the parent of an image. */
  setParent(id: string, parentId: string): void {
    if (!this.#images.has(id)) notFound(id);
    this.#images.change(id, (record) => ({ ...record, parentId }));
  }

  /** Records that a build on this machine has made the image, on top of its parent. */
  setBuiltHere(id: string, parentId: string | undefined): void {
    if (!this.#images.has(id)) notFound(id);
    const parent = parentId === undefined ? {} : { parentId };
    this.#images.change(id, (record) => ({ ...record, ...parent, isBuiltHere: true }));
  }

  /** The images on top of this one that builds on this machine have made; of undefined: those without a parent. */
  builtOn(id: string | undefined): Image[] {
    const children = this.#images.in('parent', id ?? '');
    return children.filter(({ isBuiltHere }) => isBuiltHere === true).map((record) => this.#imageOf(record));
  }

  /** Gives an image a name, and removes the name from the image that had it. A name has a tag or a digest. */
  refer(reference: Reference, imageId: string): void {
    if (!this.#images.has(imageId)) notFound(imageId);
    this.#names.put({ ...reference, name: nameOf(reference), imageId });
  }

  /** Records when a client last gave the image a name. */
  setTaggedAt(id: string, taggedAt: Temporal.Instant): void {
    this.#images.change(id, (record) => {
      const tagged = { ...record, taggedAt };
      this.#parsed.set(tagged, this.#imageOf(record)); // only its record is another one
      return tagged;
    });
  }

  /** Removes a name. */
  unrefer(reference: Reference): void {
    this.#names.delete(nameOf(reference));
  }

  /** Removes an image and its names, in one commit with `also`; the chain ids of the layers that went with it. */
  delete(id: string, also: () => void): string[] {
    this.#db.transaction(() => {
      for (const { name } of this.#names.in('image', id)) this.#names.delete(name);
      this.#images.delete(id);
      also();
    });
    return this.#layers.release(id);
  }

  #byPrefix(prefix: string): Image | undefined {
    if (prefix === 'sha256:') return undefined;
    const matches = this.#images.idsFrom(prefix);
    return matches.length === 1 ? this.get(matches[0]!) : undefined;
  }

  #imageOf(record: ImageRecord): Image {
    const known = this.#parsed.get(record);
    if (known !== undefined) return known;
    const { id, json, parentId } = record;
    const parsed = parseImage(JSON.parse(json));
    const chain = parsed.layers.map((chainId) => this.#layers.get(chainId));
    const sizeBytes = chain.reduce((sum, layer) => sum + (layer?.sizeBytes ?? 0), 0);
    const image = Object.freeze({ ...parsed, id, parentId, sizeBytes });
    this.#parsed.set(record, image);
    return image;
  }
}

/** In its complete form. */
function nameOf({ repository, tag, digest }: Reference): string {
  return `${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

function notFound(ref: string): never {
  throw new EngineError('notFound', `No such image: ${ref}`);
}
