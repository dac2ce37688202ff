import type { Ask } from '../types.ts';
import type { FlatRules } from './flat-rules.ts';
import { CORE, HOUR, MINUTE } from './record.ts';
import type { Windows } from './windows.ts';

/** Takes back what an admitted request has spent of its caller's windows, where they are still open; of CPU time nothing. */
export function takeBack(
  windows: Windows,
  words: Int32Array,
  at: number,
  { endpoint, points }: Ask,
  { categories, minute, hour, rest, graphql }: FlatRules,
  now: number,
): void {
  const { categoryIndex, id } = endpoint;
  const span = categories[categoryIndex]!;
  if (endpoint.primary) {
    if (categoryIndex === CORE.id) windows.take(words, at, CORE, 1, now, span);
    else windows.takeFrom(words, at, categoryIndex, 1, now, span);
  }
  windows.takeFrom(words, at, id, points, now, endpoint.graphql ? graphql : rest);
  if (!endpoint.content) return;
  windows.take(words, at, MINUTE, 1, now, minute);
  windows.take(words, at, HOUR, 1, now, hour);
  windows.takeFrom(words, at, id + 1, 1, now, minute);
  windows.takeFrom(words, at, id + 2, 1, now, hour);
}
