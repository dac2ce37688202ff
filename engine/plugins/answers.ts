import type { TSchema } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../lib/bounded-json.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The JSON of an answer; `{}` for an empty one, and undefined for anything else. */
export function readJson(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnboundedJsonError) return undefined;
    throw error;
  }
}

/**
 * The fields of an answer as docker reads them, which is written in Go: `null` is an answer without fields, a field that is
 * `null` is missing, and the letters of a field's name may be of either case.
 */
export function fieldsOf(answer: unknown, schema: TSchema): unknown {
  return asInGo(answer, schema) ?? (answer === null ? {} : undefined);
}

function asInGo(value: unknown, schema: TSchema): unknown {
  if (value === null) return undefined;
  const variants = 'anyOf' in schema ? (schema.anyOf as TSchema[]) : [schema];
  if (Array.isArray(value)) {
    const items = variants.find((variant) => 'items' in variant)?.items as TSchema | undefined;
    return items === undefined ? value : value.map((item) => asInGo(item, items) ?? item);
  }
  const properties = variants.find((variant) => 'properties' in variant)?.properties as
    | Record<string, TSchema>
    | undefined;
  return typeof value === 'object' && properties !== undefined ? namedFields(value as Fields, properties) : value;
}

/** The fields of the schema; others do not count. */
function namedFields(fields: Fields, properties: Readonly<Record<string, TSchema>>): Fields {
  const byName = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  const read = Object.entries(properties).flatMap(([name, schema]) => {
    const written = Object.hasOwn(fields, name) ? fields[name] : byName.get(name.toLowerCase());
    const value = written === undefined ? undefined : asInGo(written, schema);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(read);
}
