import type { Database } from '../db/database.ts';
import type { Layers } from '../layers/layers.ts';
import { EngineError } from '../lib/errors.ts';
import type { HistoryEntry, ImageConfig } from './image-config.ts';
import { parseImage } from './image-json.ts';
import { familiarReference, parseReference, withDefaultTag, type Reference } from './reference.ts';

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

const migrations = [
  `CREATE TABLE images (
     id TEXT PRIMARY KEY,
     json TEXT NOT NULL,
     parent TEXT,
     tagged_ns TEXT
   ) STRICT;
   CREATE TABLE image_references (
     repository TEXT NOT NULL,
     tag TEXT NOT NULL,
     digest TEXT NOT NULL,
     image TEXT NOT NULL REFERENCES images (id),
     PRIMARY KEY (repository, tag, digest)
   ) STRICT, WITHOUT ROWID;`,
];

/** The images and their names, all in memory; a change is committed before it is visible. */
export class ImageStore {
  readonly #db: Database;
  readonly #layers: Layers;
  readonly #images = new Map<string, Image>();
  readonly #taggedAt = new Map<string, Temporal.Instant>();
  /** By reference, which has a tag or a digest, never both. */
  readonly #references = new Map<string, { reference: Reference; imageId: string }>();
  readonly #statements;

  constructor(db: Database, layers: Layers) {
    this.#db = db;
    this.#layers = layers;
    db.migrate('images', migrations);
    this.#statements = {
      json: db.sql.prepare('SELECT json FROM images WHERE id = ?'),
      // An image whose record could not be decoded has a row already.
      insert: db.sql.prepare(
        `INSERT INTO images (id, json, parent) VALUES (?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET json = excluded.json, parent = excluded.parent, tagged_ns = NULL`,
      ),
      setParent: db.sql.prepare('UPDATE images SET parent = ? WHERE id = ?'),
      setTagged: db.sql.prepare('UPDATE images SET tagged_ns = ? WHERE id = ?'),
      delete: db.sql.prepare('DELETE FROM images WHERE id = ?'),
      deleteReferences: db.sql.prepare('DELETE FROM image_references WHERE image = ?'),
      refer: db.sql.prepare(
        'INSERT INTO image_references VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET image = excluded.image',
      ),
      deleteReference: db.sql.prepare('DELETE FROM image_references WHERE repository = ? AND tag = ? AND digest = ?'),
    };
    this.#load();
  }

  /** The image a client means: by id, unique prefix of it, name with tag (default `latest`) or name with digest. */
  find(ref: string): Image {
    const byId = this.#images.get(ref) ?? this.#images.get(`sha256:${ref}`);
    if (byId !== undefined) return byId;
    if (/^sha256:[0-9a-f]*$/.test(ref)) return this.#byPrefix(ref) ?? notFound(ref);
    const reference = /^[0-9a-f]{64}$/.test(ref) ? undefined : withDefaultTag(parseReference(ref));
    const named = reference && this.named(reference);
    return named ?? this.#byPrefix(`sha256:${ref}`) ?? notFound(reference ? familiarReference(reference) : ref);
  }

  get(id: string): Image | undefined {
    return this.#images.get(id);
  }

  /** The configuration byte for byte: its digest is the id. */
  jsonOf(id: string): string {
    const row = this.#statements.json.get(id);
    return row === undefined ? notFound(id) : String(row.json);
  }

  all(): readonly Image[] {
    return [...this.#images.values()];
  }

  /** The ids of all images, including those whose records cannot be decoded, so that their layers stay. */
  ids(): ReadonlySet<string> {
    return new Set([...this.#images.keys(), ...this.#db.badRecords.idsIn('images')]);
  }

  /** The image with exactly this name; a digest overrides the tag. */
  named({ repository, tag, digest }: Reference): Image | undefined {
    const key = familiarReference(digest === undefined ? { repository, tag } : { repository, digest });
    const found = this.#references.get(key);
    return found === undefined ? undefined : this.#images.get(found.imageId);
  }

  /** Whether `ref` is an image's id or a prefix of it, not a name. */
  isId(image: Image, ref: string): boolean {
    const hex = ref.startsWith('sha256:') ? ref.slice('sha256:'.length) : ref;
    return image.id.startsWith(`sha256:${hex}`);
  }

  /** An image's names in their short form, sorted: those with a tag and those with a digest. */
  referencesOf(id: string): Reference[] {
    return [...this.#references]
      .filter(([, { imageId }]) => imageId === id)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { reference }]) => reference);
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
    return this.#taggedAt.get(id);
  }

  childrenOf(id: string): Image[] {
    return this.all().filter((image) => image.parentId === id);
  }

  /**
   * Stores an image whose layers are registered; `json` is its configuration byte for byte. An existing image stays
   * unchanged.
   */
  insert(id: string, json: string, parentId?: string): Image {
    const known = this.#images.get(id);
    if (known !== undefined) return known;
    const image = this.#imageOf(id, json, parentId);
    this.#layers.own(id, image.layers.at(-1));
    try {
      this.#statements.insert.run(id, json, parentId ?? null);
    } catch (error) {
      this.#layers.release(id);
      throw error;
    }
    this.#images.set(id, image);
    return image;
  }

  /** Records the parent of an image. */
  setParent(id: string, parentId: string): void {
    const image = this.#images.get(id);
    if (image === undefined) return notFound(id);
    this.#statements.setParent.run(parentId, id);
    this.#images.set(id, { ...image, parentId });
  }

  /** Gives an image a name, and removes the name from the image that had it. A name has a tag or a digest. */
  refer(reference: Reference, imageId: string, now: Temporal.Instant): void {
    const { repository, tag, digest } = reference;
    this.#db.transaction(() => {
      this.#statements.refer.run(repository, tag ?? '', digest ?? '', imageId);
      this.#statements.setTagged.run(String(now.epochNanoseconds), imageId);
    });
    this.#references.set(familiarReference(reference), { reference, imageId });
    this.#taggedAt.set(imageId, now);
  }

  /** Removes a name. */
  unrefer(reference: Reference): void {
    this.#statements.deleteReference.run(reference.repository, reference.tag ?? '', reference.digest ?? '');
    this.#references.delete(familiarReference(reference));
  }

  /** Removes an image and its names; returns the chain ids of the layers that went with it. */
  delete(id: string): string[] {
    this.#db.transaction(() => {
      this.#statements.deleteReferences.run(id);
      this.#statements.delete.run(id);
    });
    for (const [key, { imageId }] of this.#references) if (imageId === id) this.#references.delete(key);
    this.#images.delete(id);
    this.#taggedAt.delete(id);
    return this.#layers.release(id);
  }

  #byPrefix(prefix: string): Image | undefined {
    if (prefix === 'sha256:') return undefined;
    const matches = [...this.#images.keys()].filter((id) => id.startsWith(prefix));
    return matches.length === 1 ? this.#images.get(matches[0]!) : undefined;
  }

  #imageOf(id: string, json: string, parentId: string | undefined): Image {
    const parsed = parseImage(JSON.parse(json));
    const chain = parsed.layers.map((chainId) => this.#layers.get(chainId));
    const sizeBytes = chain.reduce((sum, layer) => sum + (layer?.sizeBytes ?? 0), 0);
    return Object.freeze({ ...parsed, id, parentId, sizeBytes });
  }

  #load(): void {
    const { sql, badRecords } = this.#db;
    const images = sql.prepare('SELECT * FROM images ORDER BY rowid').iterate();
    badRecords.decodeAll('images', 'id', images, (row) => {
      const id = String(row.id);
      const image = this.#imageOf(id, String(row.json), row.parent === null ? undefined : String(row.parent));
      const taggedAt = row.tagged_ns === null ? undefined : new Temporal.Instant(BigInt(String(row.tagged_ns)));
      this.#images.set(id, image);
      if (taggedAt !== undefined) this.#taggedAt.set(id, taggedAt);
    });
    for (const row of sql.prepare('SELECT * FROM image_references').iterate()) {
      const reference = {
        repository: String(row.repository),
        tag: String(row.tag) || undefined,
        digest: String(row.digest) || undefined,
      };
      this.#references.set(familiarReference(reference), { reference, imageId: String(row.image) });
    }
  }
}

function notFound(ref: string): never {
  throw new EngineError('notFound', `No such image: ${ref}`);
}
