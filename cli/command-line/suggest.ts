import { editDistance } from '@gantry/template/edit-distance.ts';

/** The known words nearest to a mistyped one; none if all are too different. */
export function nearest(word: string, known: readonly string[]): string[] {
  const max = word.length < 4 ? 1 : 2;
  const near = known
    .map((name) => ({ name, distance: name.startsWith(word) && word.length > 1 ? 1 : editDistance(word, name, max) }))
    .filter(({ distance }) => distance <= max)
    .toSorted((a, b) => a.distance - b.distance);
  return near.slice(0, 3).map(({ name }) => name);
}
