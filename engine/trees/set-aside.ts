import { mkdirSync, renameSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

import { hasCode } from '../lib/errors.ts';

type Log = { warn(details: object, message: string): void; error(details: object, message: string): void };

/**
 * Where things go that lie in the data root and that no record knows: `lost-and-found/<time>/` and their path.
 *
 * They may be all that is left of somebody's work, when the records were lost or are older than the files. Nobody but the
 * operator removes them.
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

  /** What cannot be moved stays where it is. */
  take(path: string): void {
    const place = join(this.#folder, relative(this.#dataRoot, dirname(path)));
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      renameSync(path, join(place, basename(path)));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return;
      this.#log.error({ err: error, path }, 'something that no record knows cannot be set aside');
      return;
    }
    this.#log.warn({ path, to: place }, 'something that no record knows was set aside');
  }
}
