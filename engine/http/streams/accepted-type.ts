/**
 * The offer with the highest weight that the client lists by its full name, as in dockerd: wildcards do not count, and
 * the first of equal offers is taken. Undefined without a match.
 */
export function acceptedType<Offer extends string>(
  accept: string | undefined,
  offers: readonly Offer[],
): Offer | undefined {
  const weights = new Map((accept ?? '').split(',').map(parseRange));
  const listed = offers.filter((offer) => (weights.get(offer) ?? 0) > 0);
  return listed.toSorted((a, b) => weights.get(b)! - weights.get(a)!)[0];
}

/** A media range with its weight: `application/jsonl;q=0.5`. */
function parseRange(range: string): [type: string, weight: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return [type, weight === undefined ? 1 : Number(weight) || 0];
}
