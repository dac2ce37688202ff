/** The known words nearest to a mistyped one; none if all are too different. */
export function nearest(word: string, known: readonly string[]): string[] {
  const limit = word.length < 4 ? 1 : 2;
  const near = known
    .map((name) => ({ name, distance: name.startsWith(word) && word.length > 1 ? 1 : distance(word, name) }))
    .filter((each) => each.distance <= limit)
    .toSorted((a, b) => a.distance - b.distance);
  return near.slice(0, 3).map(({ name }) => name);
}

/** Letters to insert, drop, replace, or swap with their neighbour. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array.from({ length: b.length }, () => 0)]);
  for (let j = 1; j <= b.length; j += 1) rows[0]![j] = j;
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      rows[i]![j] = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, rows[i - 1]![j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        rows[i]![j] = Math.min(rows[i]![j]!, rows[i - 2]![j - 2]! + 1);
      }
    }
  }
  return rows[a.length]![b.length]!;
}
