import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { createTable, recordOf } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';

/** One extracted layer. The chain id identifies its content together with all layers below. */
const Layer = Type.Object({
  chainId: Type.String(),
  /** Digest of the uncompressed archive. */
  diffId: Type.String(),
  /** Chain id of the layer below. */
  parent: Type.Optional(Type.String()),
  /** The name of its folder, short, so that the overlay options of many layers fit into one page. */
  folder: Type.String(),
  /** Digest of the archive as received, which is kept whole or as a skeleton. */
  blob: Type.String(),
  /** The size of its files. */
  sizeBytes: Type.Integer(),
  /** The size of the uncompressed archive; layers of older versions do not say it. */
  archiveBytes: Type.Optional(Type.Integer()),
});
export type Layer = Readonly<Static<typeof Layer>>;

/** An image or a container that needs a chain of layers. */
const Owner = Type.Object({
  owner: Type.String(),
  kind: Type.Union([Type.Literal('image'), Type.Literal('container')]),
  /** Chain id of the topmost layer. */
  top: Type.Optional(Type.String()),
  /** Project number of the file system's quotas: a container whose writable layer has a limit. */
  project: Type.Optional(Type.Integer()),
});
export type Owner = Readonly<Static<typeof Owner>>;

const migrations = [
  `CREATE TABLE layers (
     chain_id TEXT PRIMARY KEY,
     diff_id TEXT NOT NULL,
     parent TEXT REFERENCES layers (chain_id),
     folder TEXT NOT NULL UNIQUE,
     blob TEXT NOT NULL,
     size_bytes INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE layer_owners (
     owner TEXT PRIMARY KEY,
     kind TEXT NOT NULL CHECK (kind IN ('image', 'container')),
     top TEXT REFERENCES layers (chain_id)
   ) STRICT, WITHOUT ROWID;`,
  `ALTER TABLE layers RENAME TO old_layers;
   ALTER TABLE layer_owners RENAME TO old_layer_owners;
   ${createTable('layers')}
   ${createTable('layer_owners')}
   INSERT INTO layers (id, version, record)
     SELECT chain_id, 1, ${recordOf({
       chainId: 'chain_id',
       diffId: 'diff_id',
       parent: 'parent',
       folder: 'folder',
       blob: 'blob',
       sizeBytes: 'size_bytes',
     })}
     FROM old_layers ORDER BY rowid;
   INSERT INTO layer_owners (id, version, record)
     SELECT owner, 1, ${recordOf({ owner: 'owner', kind: 'kind', top: 'top' })} FROM old_layer_owners;
   DROP TABLE old_layer_owners;
   DROP TABLE old_layers;`,
];

/** The tables of the layers and of their owners. */
export function openLayers(db: Database) {
  db.migrate('layers', migrations);
  return {
    layers: new RecordTable(db, { name: 'layers', schema: Layer, id: ({ chainId }) => chainId }),
    owners: new RecordTable(db, { name: 'layer_owners', schema: Owner, id: ({ owner }) => owner }),
  };
}
