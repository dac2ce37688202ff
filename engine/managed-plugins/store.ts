import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant } from '../db/decode.ts';
import { createTable } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { familiarReference, parseReference, withDefaultTag } from '../images/names/reference.ts';
import { EngineError } from '../lib/errors.ts';

const InstalledPlugin = Type.Object({
  id: Type.String(),
  /** Familiar, with its tag or digest: `registry:5000/name:latest`. */
  name: Type.String(),
  /** Digest of the manifest that it came from. */
  digest: Type.String(),
  installedAt: Instant,
  /** Byte for byte as in the registry. */
  config: Type.String(),
  isEnabled: Type.Boolean(),
  /** The reference that it came from, where that is not its name. */
  origin: Type.Optional(Type.String()),
  /** Changed settings, by name and field: `DEBUG.value`. */
  settings: Type.Optional(Type.Record(Type.String(), Type.String())),
  /** The folder of its root file system: an upgrade makes a new one. */
  rootfs: Type.Optional(Type.String()),
  /** Its layers, base first, whose files are kept for a push; a plugin that an older version of Gantry installed has none. */
  layers: Type.Optional(Type.Array(Type.Object({ digest: Type.String(), sizeBytes: Type.Integer() }))),
});
export type InstalledPlugin = Readonly<Static<typeof InstalledPlugin>>;

/** The plugins that the engine itself has installed; their files are in `<data-root>/plugins/<id>`. */
export class InstalledPlugins {
  readonly #table;

  constructor(db: Database) {
    db.migrate('plugins', [createTable('plugins')]);
    this.#table = new RecordTable(db, {
      name: 'plugins',
      schema: InstalledPlugin,
      id: ({ id }) => id,
      unique: { name: ({ name }) => name },
    });
  }

  all(): readonly InstalledPlugin[] {
    return this.#table.all();
  }

  get(id: string): InstalledPlugin | undefined {
    return this.#table.get(id);
  }

  named(name: string): InstalledPlugin | undefined {
    return this.#table.by('name', name);
  }

  /** By its name, with or without the tag `latest`, its id, or the beginning of its id. Throws `notFound`. */
  find(ref: string): InstalledPlugin {
    const found = this.search(ref);
    if (found === undefined) throw new EngineError('notFound', `plugin "${ref}" not found`);
    return found;
  }

  /** Like `find`, but undefined if no plugin matches. */
  search(ref: string): InstalledPlugin | undefined {
    if (this.#table.all().length === 0) return undefined;
    const named = this.named(fullName(ref));
    if (named !== undefined || !/^[0-9a-f]+$/.test(ref)) return named;
    const ids = this.#table.idsFrom(ref);
    return ids.length === 1 ? this.get(ids[0]!) : undefined;
  }

  /** Whether a record has this id, also one that cannot be read. */
  isKnown(id: string): boolean {
    return this.#table.has(id) || this.#table.idsSetAside().includes(id);
  }

  /** Throws `conflict` if a record that cannot be read has this id. */
  insert(plugin: InstalledPlugin): void {
    this.#table.insert(plugin);
  }

  setEnabled(id: string, isEnabled: boolean): void {
    this.#table.change(id, (plugin) => ({ ...plugin, isEnabled }));
  }

  change(id: string, change: Partial<InstalledPlugin>): void {
    this.#table.change(id, (plugin) => ({ ...plugin, ...change }));
  }

  delete(id: string): void {
    this.#table.delete(id);
  }
}

/** The name in the form of the records; a malformed one stays unchanged, and matches no record. */
function fullName(ref: string): string {
  try {
    return familiarReference(withDefaultTag(parseReference(ref)));
  } catch (error) {
    if (error instanceof EngineError) return ref;
    throw error;
  }
}
