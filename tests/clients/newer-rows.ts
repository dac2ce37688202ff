import type { Side } from './both-engines.ts';
import { automaticRemovalRows } from './newer/automatic-removal.ts';
import { diskUsageRows } from './newer/disk-usage.ts';
import { pruneRows } from './newer/prune.ts';
import { smallRows } from './newer/small-things.ts';

/** Work that is done on both engines, whose results are compared. */
export type NewerRow = Readonly<{
  title: string;
  work: (side: Side) => Promise<unknown>;
  /** A deliberate difference: our result, and its reason. */
  differs?: Readonly<{ ours: unknown; why: string }>;
}>;

export const NEWER_ROWS: readonly NewerRow[] = [...automaticRemovalRows, ...pruneRows, ...diskUsageRows, ...smallRows];
