import { EngineError, refuseIf } from '../errors.ts';

/** A resource that a node's owner has named: an amount of it, or one by its own name. */
export type GenericResource = Readonly<{ kind: string; amount: number } | { kind: string; name: string }>;

/**
 * Parses resources of a node: `SSD=5` for an amount, `GPU=UUID1` for one that has a name; several of these are several words.
 * The amounts come first.
 */
export function parseGenericResources(words: readonly string[]): GenericResource[] {
  const byKind = new Map<string, string[]>();
  for (const word of words) {
    const [, kind, value] = /^([^=;,]+)=([^=;,]+)$/.exec(word) ?? [];
    if (kind === undefined || value === undefined) {
      throw refused(`incorrect term ${word}, missing '=' or malformed expression`);
    }
    byKind.set(kind, [...(byKind.get(kind) ?? []), value]);
  }
  const all = [...byKind].flatMap(([kind, values]) => resourcesOf(kind, values));
  return all.toSorted((a, b) => Number('name' in a) - Number('name' in b));
}

function resourcesOf(kind: string, values: readonly string[]): GenericResource[] {
  if (!values.some(isAmount)) return [...new Set(values)].map((name) => ({ kind, name }));
  if (values.length > 1) {
    throw refused(`mixed discrete and named resources in expression '${kind}=[${values.join(' ')}]'`);
  }
  const amount = Number(values[0]);
  if (amount < 0) throw refused(`cannot ask for negative resource ${kind}`);
  refuseIf(!Number.isSafeInteger(amount), `could not parse GenericResource: the amount of ${kind} is too large`);
  return [{ kind, amount }];
}

function isAmount(value: string): boolean {
  return /^[+-]?\d+$/.test(value);
}

function refused(reason: string): EngineError {
  return new EngineError('invalid', `could not parse GenericResource: ${reason}`);
}
