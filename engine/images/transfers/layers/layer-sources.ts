import { Type } from 'typebox';

import type { Database } from '../../../db/database.ts';
import { createTable } from '../../../db/migration-sql.ts';
import { RecordTable } from '../../../db/table.ts';
import type { Layers } from '../../../layers/layers.ts';

/** A blob of a repository that has the content of one of our layers. */
const LayerSource = Type.Object({
  id: Type.String(),
  diffId: Type.String(),
  /** With its host: `docker.io/library/busybox`. */
  repository: Type.String(),
  digest: Type.String(),
  sizeBytes: Type.Integer(),
});

export type LayerSource = Readonly<{ repository: string; digest: string; sizeBytes: number }>;

/** For each layer; the oldest are forgotten. */
const REMEMBERED = 20;

/**
 * The sources and targets of layers, so that a push need not send, or even compress, layers that a registry has. This
 * is only a hint: the registry is asked.
 */
export class LayerSources {
  readonly #table;
  readonly #layers: Layers;

  constructor(db: Database, layers: Layers) {
    db.migrate('layer_sources', [createTable('layer_sources')]);
    this.#layers = layers;
    this.#table = new RecordTable(db, {
      name: 'layer_sources',
      schema: LayerSource,
      id: ({ id }) => id,
      groups: { layer: ({ diffId }) => diffId },
    });
  }

  /** The newest first. */
  of(diffId: string): LayerSource[] {
    return this.#table.in('layer', diffId).toReversed();
  }

  remember(diffId: string, source: LayerSource): void {
    const id = `${diffId} ${source.repository} ${source.digest}`;
    if (this.#table.has(id)) return;
    this.#table.put({ id, diffId, ...source });
    const known = this.#table.in('layer', diffId);
    for (const old of known.slice(0, Math.max(0, known.length - REMEMBERED))) this.#table.delete(old.id);
  }

  /** Forgets layers that are gone. */
  prune(): void {
    const present = new Set(this.#layers.all().map(({ diffId }) => diffId));
    for (const { id, diffId } of this.#table.all()) if (!present.has(diffId)) this.#table.delete(id);
  }
}
