import { mkdirSync, renameSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { namesIn } from '../lib/folders.ts';

type Log = { warn(details: object, message: string): void; error(details: object, message: string): void };

/**
 * Moves files of the data root that no record mentions to `lost-and-found/<time>/`, under their path.
 *
 * They may be a user's data, when records were lost or are older than the files. Only the operator removes them.
 */
export class SetAside {
  readonly #dataRoot: string;
  readonly #folder: string;
  readonly #log: Log;

  constructor(dataRoot: string, now: Temporal.Instant, log: Log) {
    this.#dataRoot = dataRoot;
    this.#folder = join(dataRoot, 'lost-and-found', now.toString({ smallestUnit: 'second' }));
    this.#log = log;
  }

  /** Names the folders that earlier starts have set aside; those starts have named their content. */
  tellEarlier(): void {
    const folder = dirname(this.#folder);
    const starts = namesIn(folder).filter((name) => name !== basename(this.#folder)).length;
    if (starts > 0) this.#log.warn({ folder, starts }, 'files that earlier starts have set aside still exist');
  }

  /** A file that cannot be moved stays where it is. */
  take(path: string): void {
    const place = join(this.#folder, relative(this.#dataRoot, dirname(path)));
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      renameSync(path, join(place, basename(path)));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return;
      this.#log.error({ err: error, path }, 'a path without a record cannot be set aside');
      return;
    }
    this.#log.warn({ path, to: place }, 'a path without a record was set aside');
  }
}
