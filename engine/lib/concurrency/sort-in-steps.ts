const RUN_LENGTH = 1024;

/** Sorts texts by their UTF-16 units, as `toSorted` does, in steps of some thousand comparisons. */
export function* sortInSteps(texts: readonly string[]): Generator<void, readonly string[]> {
  let runs: (readonly string[])[] = [];
  for (let at = 0; at < texts.length; at += RUN_LENGTH) {
    runs.push(texts.slice(at, at + RUN_LENGTH).toSorted());
    yield;
  }
  while (runs.length > 1) {
    const merged: (readonly string[])[] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergeInSteps(runs[at]!, runs[at + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeInSteps(left: readonly string[], right: readonly string[]): Generator<void, readonly string[]> {
  if (right.length === 0) return left;
  const merged: string[] = [];
  let [atLeft, atRight] = [0, 0];
  while (merged.length < left.length + right.length) {
    const [one, other] = [left[atLeft], right[atRight]];
    if (other === undefined || (one !== undefined && one <= other)) {
      merged.push(one!);
      atLeft += 1;
    } else {
      merged.push(other);
      atRight += 1;
    }
    if (merged.length % RUN_LENGTH === 0) yield;
  }
  return merged;
}
