import type { Places } from '@gantry/template/glob.ts';
import { MAX_PATH_LENGTH, type IgnorePattern } from '@gantry/template/ignore-file.ts';

import { EngineError } from '../../lib/errors.ts';
import type { ContextNode, ContextTree } from './context-tree.ts';

/** A pattern that entries below a folder can still match: its number, and its places behind the folder's name. */
type Live = Readonly<{ pattern: number; places: Places }>;

/** Places of all patterns in all folders above an entry: 100 bytes each. */
const MAX_PLACES = 500_000;
/** Comparisons in one step, which take a millisecond or less. */
const STEP_WORK = 2000;

/** Ignores the entries of the tree that the patterns exclude, in steps. */
export function* removeIgnored(tree: ContextTree, patterns: readonly IgnorePattern[]): Generator<void, void> {
  const walk = new Walk(tree, patterns);
  const live = patterns.map(({ glob }, pattern) => ({ pattern, places: glob.begin() }));
  yield* walk.removeIn(tree.root, { path: '', depth: 0, live, above: -1 });
}

type Folder = Readonly<{
  path: string;
  depth: number;
  live: readonly Live[];
  /** The last pattern that excludes or includes all that is below it; -1 for none. */
  above: number;
}>;

class Walk {
  readonly #tree: ContextTree;
  readonly #patterns: readonly IgnorePattern[];
  #places = 0;

  constructor(tree: ContextTree, patterns: readonly IgnorePattern[]) {
    this.#tree = tree;
    this.#patterns = patterns;
  }

  /** Returns whether an entry below stays: then its folders stay as well. */
  *removeIn(node: ContextNode, { path, depth, live, above }: Folder): Generator<void, boolean> {
    this.#places += live.reduce((sum, { places }) => sum + places.length, 0);
    if (this.#places > MAX_PLACES) {
      throw new EngineError('invalid', `the patterns of the ignore file match too much of the folder ${path}`);
    }
    let staysAny = false;
    for (const child of this.#tree.entriesIn(node)) {
      const name = this.#tree.nameOf(child);
      const inner = path === '' ? name : `${path}/${name}`;
      const isTooLong = inner.length > MAX_PATH_LENGTH;
      const reached = isTooLong ? [] : yield* this.#follow(live, name);
      const ended = reached.filter(({ pattern, places }) => this.#patterns[pattern]!.glob.isEnd(places));
      const last = Math.max(above, ended.at(-1)?.pattern ?? -1);
      let stays = last < 0 || this.#patterns[last]!.isException;
      if (this.#tree.typeOf(child) === 'folder' && !this.#tree.isEmpty(child)) {
        const whole = ended.findLast(({ pattern }) => this.#patterns[pattern]!.depth === depth + 1)?.pattern ?? -1;
        const further = yield* this.#follow(reached, '/');
        const folder = { path: inner, depth: depth + 1, live: further, above: Math.max(above, whole) };
        if (yield* this.removeIn(child, folder)) stays = true;
      }
      if (stays) staysAny = true;
      else this.#tree.ignore(child);
    }
    this.#places -= live.reduce((sum, { places }) => sum + places.length, 0);
    return staysAny;
  }

  *#follow(live: readonly Live[], text: string): Generator<void, Live[]> {
    const reached: Live[] = [];
    let work = 0;
    for (const { pattern, places } of live) {
      const { glob } = this.#patterns[pattern]!;
      work -= glob.work;
      const next = glob.follow(places, text);
      work += glob.work;
      if (next.length > 0) reached.push({ pattern, places: next });
      if (work < STEP_WORK) continue;
      yield;
      work = 0;
    }
    yield;
    return reached;
  }
}
