import type { Database } from '../db/database.ts';
import type { Layers } from '../layers/layers.ts';
import { EngineError } from '../lib/errors.ts';
import { parseImage } from './configuration/image-json.ts';
import { RecentSettings, type ParsedSettings } from './configuration/parsed-settings.ts';
import { checkPlatform, fitsPlatform, HOST_PLATFORM, notProvided, type Platform } from './configuration/platform.ts';
import { Documents, type ImageDocument } from './manifests/documents.ts';
import { familiarReference, parseReference, withDefaultTag, type Reference } from './names/reference.ts';
import { openImages, targetOf, type ImageRecord, type NameRecord } from './records.ts';

export type Image = Readonly<{
  /** Digest of the configuration: `sha256:…`. */
  id: string;
  /** The labels of its settings, which lists show; null: it has none. */
  labels: Readonly<Record<string, string>> | null;
  /** The command of the step of a build that made it. */
  stepCommand: readonly string[];
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
  /** The parent image, if it is known and exists here. */
  parentId: string | undefined;
  sizeBytes: number;
}> &
  ParsedSettings;

/**
 * The images and their names, all in memory; a change is committed before it is visible.
 *
 * A name may stand for an index of several platforms. Each platform that is here is an image; the name's own image is
 * that of this machine's platform, or else the first one.
 */
export class ImageStore {
  /** Indexes and manifests behind names; changed by this store alone. */
  readonly documents: Documents;
  readonly #db: Database;
  readonly #layers: Layers;
  readonly #images;
  readonly #names;
  readonly #ofRecords = new WeakMap<ImageRecord, Image>();
  readonly #settings = new RecentSettings();

  constructor(db: Database, layers: Layers) {
    this.#db = db;
    this.#layers = layers;
    this.documents = new Documents(db);
    const { images, names } = openImages(db, (record) => void this.#imageOf(record));
    this.#images = images;
    this.#names = names;
  }

  /**
   * The image a client means: by id, unique prefix of it, name with tag (default `latest`) or name with digest. With a
   * platform the one of its index. Throws `notFound`.
   */
  find(ref: string, platform?: Platform): Image {
    const image = this.#find(ref);
    if (platform === undefined || fitsPlatform(platform, image)) return image;
    const target = this.targetOf(ref, image);
    const entries = target === undefined ? [] : this.documents.manifestsBelow(target);
    if (entries.length < 2) checkPlatform(image, ref, platform);
    const other = this.platformsBelow(target ?? '').find((each) => fitsPlatform(platform, each));
    return other ?? notProvided(ref, platform);
  }

  #find(ref: string): Image {
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

  /** The image with exactly this name; a digest overrides the tag. With a platform that of its index. */
  named(reference: Reference, platform?: Platform): Image | undefined {
    const found = this.#nameRecord(reference);
    const image = found && this.get(found.imageId);
    if (image === undefined || platform === undefined || fitsPlatform(platform, image)) return image;
    return this.platformsBelow(targetOf(found!) ?? '').find((each) => fitsPlatform(platform, each));
  }

  /** Digest of the document that a client means, kept or not: that of the name, or of an id's first name. */
  targetOf(ref: string, image: Image): string | undefined {
    if (this.isId(image, ref)) return this.#firstTarget(image.id);
    return this.namedTarget(withDefaultTag(parseReference(ref)));
  }

  /** Digest of the document behind exactly this name. */
  namedTarget(reference: Reference): string | undefined {
    const found = this.#nameRecord(reference);
    return found && targetOf(found);
  }

  /** The images of the platforms below a document that are here, in the order of their index. */
  platformsBelow(target: string): Image[] {
    return this.documents.imagesBelow(target).flatMap((id) => this.get(id) ?? []);
  }

  /** An image, and those of other platforms that share an index with it. */
  withPlatforms(image: Image): Image[] {
    const ids = new Set([image.id]);
    for (const digest of this.documents.above(image.id))
      for (const each of this.platformsBelow(digest)) ids.add(each.id);
    return [...ids].flatMap((id) => this.get(id) ?? []);
  }

  /** The tags of a repository, with the images and the documents that they stand for. */
  tagsIn(repository: string): { tag: string; image: Image; target: string | undefined }[] {
    const found = this.#names.values().filter((name) => name.repository === repository && name.tag !== undefined);
    return [...found].flatMap((name) => {
      const image = this.get(name.imageId);
      return image === undefined ? [] : [{ tag: name.tag!, image, target: targetOf(name) }];
    });
  }

  /** Whether a kept index lists the image. */
  isInIndex(id: string): boolean {
    return this.documents.ofImage(id).some(({ digest }) => this.documents.parentsOf(digest).size > 0);
  }

  /** Whether the image only belongs to indexes of which another platform stands for the name. */
  isOtherPlatform(id: string): boolean {
    return this.#names.in('image', id).length === 0 && this.referencesOf(id).length > 0;
  }

  #nameRecord({ repository, tag, digest }: Reference): NameRecord | undefined {
    return this.#names.get(nameOf(digest === undefined ? { repository, tag } : { repository, digest }));
  }

  #firstTarget(id: string): string | undefined {
    const names = this.#names.in('image', id);
    return targetOf(names.find(({ target }) => target !== undefined) ?? names[0] ?? {});
  }

  /** Whether `ref` is an image's id or a prefix of it, not a name. */
  isId(image: Image, ref: string): boolean {
    const hex = ref.startsWith('sha256:') ? ref.slice('sha256:'.length) : ref;
    return image.id.startsWith(`sha256:${hex}`);
  }

  /** An image's names, sorted by their short form: those with a tag and those with a digest, also those of its indexes. */
  referencesOf(id: string): Reference[] {
    const names = new Set(this.#names.in('image', id));
    for (const digest of this.documents.above(id)) for (const name of this.#names.in('target', digest)) names.add(name);
    return [...names]
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

  /** The repositories that are known to have an image, in their complete form. */
  repositoriesOf(id: string): string[] {
    const known = this.referencesOf(id).filter(({ digest }) => digest !== undefined);
    return [...new Set(known.map(({ repository }) => repository))];
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

  /**
   * Gives an image a name, and removes the name from the image that had it. A name has a tag or a digest; a tag may stand
   * for a kept document.
   */
  refer(reference: Reference, imageId: string, target?: string): void {
    if (!this.#images.has(imageId)) notFound(imageId);
    const name = nameOf(reference);
    this.#db.transaction(() => {
      const before = this.#names.get(name);
      const isKept = target !== undefined && this.documents.get(target) !== undefined;
      const after = { ...reference, name, imageId, ...(isKept && reference.digest === undefined && { target }) };
      if (before?.imageId !== imageId || before.target !== after.target) this.#names.put(after);
      if (before !== undefined) this.#release(targetOf(before));
      this.#chooseImages(targetOf({ digest: reference.digest, ...(isKept && { target }) }));
    });
  }

  /** Like `refer`, and keeps the documents behind the name; an index also gives its digest as a name. */
  referWith(
    documents: readonly ImageDocument[],
    reference: Reference,
    imageId: string,
    target: string | undefined,
  ): void {
    this.#db.transaction(() => {
      this.keepDocuments(documents);
      this.refer(reference, imageId, target);
      const isOfSeveral = target !== undefined && this.documents.entriesOf(target).length > 0;
      if (isOfSeveral) this.refer({ repository: reference.repository, digest: target }, imageId);
    });
  }

  /** Keeps documents for the names that the caller then gives in the same transaction. */
  keepDocuments(documents: readonly ImageDocument[]): void {
    for (const document of documents) this.documents.keep(document);
  }

  /** Records when a client last gave the image a name. */
  setTaggedAt(id: string, taggedAt: Temporal.Instant): void {
    this.#images.change(id, (record) => {
      const tagged = { ...record, taggedAt };
      this.#ofRecords.set(tagged, this.#imageOf(record)); // only its record is another one
      return tagged;
    });
  }

  /** Removes a name. */
  unrefer(reference: Reference): void {
    this.#db.transaction(() => {
      const name = this.#nameRecord(reference);
      this.#names.delete(nameOf(reference));
      this.#release(name && targetOf(name));
    });
  }

  /**
   * Removes an image in one commit with `also`, and its names unless they have other platforms; the chain ids of the
   * layers that went with it.
   */
  delete(id: string, also: () => void): string[] {
    this.#db.transaction(() => {
      const targets = new Set(this.documents.above(id));
      for (const { digest } of this.documents.ofImage(id)) this.documents.delete(digest);
      this.#images.delete(id);
      for (const target of targets) this.#chooseImages(target);
      for (const name of this.#names.in('image', id)) {
        this.#names.delete(name.name);
        targets.add(targetOf(name) ?? '');
      }
      for (const target of targets) this.#release(target);
      also();
    });
    return this.#layers.release(id);
  }

  /** At the daemon's start: removes documents that an older daemon has left without a name. */
  reconcile(): void {
    this.#db.transaction(() => {
      for (const { digest } of this.documents.all()) this.#release(digest);
    });
  }

  /** Gives the names of a document the image that stands for it now. */
  #chooseImages(target: string | undefined): void {
    if (target === undefined) return;
    const platforms = this.platformsBelow(target);
    const chosen = platforms.find((each) => fitsPlatform(HOST_PLATFORM, each)) ?? platforms[0];
    if (chosen === undefined) return;
    for (const name of this.#names.in('target', target)) {
      if (name.imageId !== chosen.id) this.#names.put({ ...name, imageId: chosen.id });
    }
  }

  /** Removes a document that neither a name nor a kept index needs, and then those below it. */
  #release(digest: string | undefined): void {
    if (digest === undefined || this.documents.get(digest) === undefined) return;
    if (this.#names.in('target', digest).length > 0 || this.documents.parentsOf(digest).size > 0) return;
    const below = this.documents.partsOf(digest);
    this.documents.delete(digest);
    for (const part of below) this.#release(part);
  }

  #byPrefix(prefix: string): Image | undefined {
    if (prefix === 'sha256:') return undefined;
    const matches = this.#images.idsFrom(prefix);
    return matches.length === 1 ? this.get(matches[0]!) : undefined;
  }

  /** The text stays in memory, but not all that was parsed of it: its settings are parsed again when they are needed. */
  #imageOf(record: ImageRecord): Image {
    const known = this.#ofRecords.get(record);
    if (known !== undefined) return known;
    const { id, json, parentId } = record;
    const { settings, ...parsed } = parseImage(JSON.parse(json));
    const recent = (first?: ParsedSettings): ParsedSettings =>
      this.#settings.get(id, json.length, () => first ?? parseImage(JSON.parse(json)).settings);
    recent(settings);
    const chain = parsed.layers.map((chainId) => this.#layers.get(chainId));
    const image = Object.freeze({
      ...parsed,
      id,
      parentId,
      sizeBytes: chain.reduce((sum, layer) => sum + (layer?.sizeBytes ?? 0), 0),
      get config() {
        return recent().config;
      },
      get wireConfig() {
        return recent().wireConfig;
      },
      get wireContainerConfig() {
        return recent().wireContainerConfig;
      },
      get history() {
        return recent().history;
      },
    });
    this.#ofRecords.set(record, image);
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
