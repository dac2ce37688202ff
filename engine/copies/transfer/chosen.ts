import { PatternError } from '@gantry/template/glob.ts';
import { ignores, patternsOf, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { EngineError } from '../../lib/errors.ts';

type Patterns = Readonly<{
  /** A file or folder that is copied with the folders above it; all are copied without a pattern. */
  included?: string | undefined;
  /** Files that are left out; `!` begins exceptions. */
  excluded: readonly string[];
}>;

/** A choice among the files below a folder, by patterns of their paths in it. */
export class Chosen {
  readonly #included: readonly IgnorePattern[] | undefined;
  readonly #excluded: readonly IgnorePattern[];

  /** Throws `invalid` for patterns that are none. */
  constructor({ included, excluded }: Patterns) {
    try {
      this.#included = included === undefined ? undefined : patternsOf([included]);
      this.#excluded = patternsOf(excluded);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      throw new EngineError('invalid', error.message, { cause: error });
    }
  }

  includes(path: string): boolean {
    const isIncluded = this.#included === undefined || this.#included.length === 0 || ignores(this.#included, path);
    return isIncluded && !ignores(this.#excluded, path);
  }

  /** Whether a folder that is left out may have chosen files in it. */
  mayHold(path: string): boolean {
    if (ignores(this.#excluded, path)) return this.#excluded.some(({ isException }) => isException);
    return (
      this.#included === undefined ||
      this.#included.some(({ glob }) => glob.follow(glob.begin(), `${path}/`).length > 0)
    );
  }
}
