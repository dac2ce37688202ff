/**
 * Counts the single characters to insert, drop or replace between two texts (Levenshtein's distance). Above `max` the
 * result is `max + 1`: texts that differ more are not compared to their end, which could take long for long ones.
 */
export function editDistance(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) > max) return max + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let at = 0; at < a.length; at += 1) {
    const next = [at + 1];
    for (let other = 0; other < b.length; other += 1) {
      const replaced = row[other]! + (a[at] === b[other] ? 0 : 1);
      next.push(Math.min(replaced, row[other + 1]! + 1, next[other]! + 1));
    }
    if (next.every((distance) => distance > max)) return max + 1;
    row = next;
  }
  return Math.min(row.at(-1)!, max + 1);
}
