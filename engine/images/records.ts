import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant } from '../db/decode.ts';
import { createTable, instantOf, recordOf } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';

const ImageRecord = Type.Object({
  id: Type.String(),
  /** Its configuration, byte for byte: the id is its digest. */
  json: Type.String(),
  parentId: Type.Optional(Type.String()),
  taggedAt: Type.Optional(Instant),
  /** A step of a build on this machine; others are no cache of builds, whatever their history says. */
  isBuiltHere: Type.Optional(Type.Boolean()),
});
export type ImageRecord = Readonly<Static<typeof ImageRecord>>;

/** A name of an image: with a tag or a digest, never both. */
const NameRecord = Type.Object({
  /** In its complete form. */
  name: Type.String(),
  repository: Type.String(),
  tag: Type.Optional(Type.String()),
  digest: Type.Optional(Type.String()),
  /** The image of a request without a platform; an index may have others. */
  imageId: Type.String(),
  /** Digest of the document that a tag stands for, if it is kept; a digest stands for itself. */
  target: Type.Optional(Type.String()),
});
export type NameRecord = Readonly<Static<typeof NameRecord>>;

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
  `ALTER TABLE images RENAME TO old_images;
   ${createTable('images')}
   ${createTable('image_names')}
   INSERT INTO images (id, version, record)
     SELECT id, 1, ${recordOf({ id: 'id', json: 'json', parentId: 'parent', taggedAt: instantOf('tagged_ns') })}
     FROM old_images ORDER BY rowid;
   INSERT INTO image_names (id, version, record)
     SELECT name, 1, ${recordOf({
       name: 'name',
       repository: 'repository',
       tag: "nullif(tag, '')",
       digest: "nullif(digest, '')",
       imageId: 'image',
     })}
     FROM (
       SELECT *, repository || iif(tag = '', '', ':' || tag) || iif(digest = '', '', '@' || digest) AS name
       FROM image_references
     );
   DROP TABLE image_references;
   DROP TABLE old_images;`,
];

/** `check` throws for an unusable configuration. */
export function openImages(db: Database, check: (record: ImageRecord) => void) {
  db.migrate('images', migrations);
  return {
    images: new RecordTable(db, {
      name: 'images',
      schema: ImageRecord,
      id: ({ id }) => id,
      check,
      groups: { parent: ({ parentId = '' }) => parentId },
    }),
    names: new RecordTable(db, {
      name: 'image_names',
      schema: NameRecord,
      id: ({ name }) => name,
      groups: { image: ({ imageId }) => imageId, target: targetOf },
    }),
  };
}

/** The digest of the document behind a name, kept or not; undefined for a tag of an image without a document. */
export function targetOf({ target, digest }: Pick<NameRecord, 'target' | 'digest'>): string | undefined {
  return target ?? digest;
}
