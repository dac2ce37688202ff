/** The parts of a JSON schema that decide how a value is read. */
export type ValueSchema = {
  type?: string | string[];
  const?: unknown;
  default?: unknown;
  anyOf?: ValueSchema[];
  allOf?: ValueSchema[];
  items?: ValueSchema;
  required?: string[];
  properties?: Record<string, ValueSchema>;
  patternProperties?: Record<string, ValueSchema>;
};

type Fields = Record<string, unknown>;
type Properties = Readonly<Record<string, ValueSchema>>;

const NO_PROPERTIES: Properties = {};
const FALSE = new Set(['0', 'false', 'f', 'no', 'n', 'off', 'none']);
/** Clients in languages with an empty value write it so. */
const EMPTY_JSON = new Set(['null', '[]', '{}']);

/**
 * Types a query (or path) by the schema: digits are integers, an empty value is the default, of a repeated key the first
 * counts unless a list is wanted. A boolean is true unless it says no, as in dockerd. Any other value stays text, and the
 * validation refuses it in the client's own words.
 */
export function readQuery(schema: ValueSchema, query: Readonly<Fields>): Fields {
  const read: Fields = { ...query };
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const value = readParameter(property, query[key]);
    if (value === undefined) delete read[key];
    else read[key] = value;
  }
  return read;
}

function readParameter(schema: ValueSchema, given: unknown): unknown {
  if (accepts(schema, 'array')) {
    if (given === undefined) return initial(schema);
    return Array.isArray(given) ? given : [given];
  }
  const value = Array.isArray(given) ? given[0] : given;
  if (value === undefined) return initial(schema);
  if (typeof value !== 'string') return value;
  if (value === '') return initial(schema) ?? (accepts(schema, 'string') ? '' : undefined);
  if (accepts(schema, 'string')) return value;
  if (accepts(schema, 'boolean')) return !FALSE.has(value.trim().toLowerCase());
  if (accepts(schema, 'null') && EMPTY_JSON.has(value)) return null;
  if (accepts(schema, 'integer') && /^[+-]?\d{1,19}$/.test(value)) return Number(value);
  if (accepts(schema, 'number') && /^[+-]?(\d+\.?\d*|\.\d+)$/.test(value)) return Number(value);
  return value;
}

/**
 * A body as Go's decoder would read it, because that is what clients were written against: `null` stands for "not
 * given" (in a map or a list, whose entry it is, for the empty value), missing fields get their defaults.
 */
export function readBody(schema: ValueSchema, given: unknown): unknown {
  if (given === null || given === undefined) {
    if (accepts(schema, 'null')) return null;
    return accepts(schema, 'object') ? readObject(schema, {}) : initial(schema);
  }
  if (Array.isArray(given)) {
    const items = listOf(schema)?.items;
    return items === undefined ? given : given.map((item) => (item === null ? emptyOf(items) : readBody(items, item)));
  }
  return typeof given === 'object' ? readObject(schema, given as Fields) : given;
}

function readObject(schema: ValueSchema, given: Fields): Fields {
  const shape = objectOf(schema);
  if (shape === undefined) return given;
  const { properties = NO_PROPERTIES } = shape;
  const entries = Object.values(shape.patternProperties ?? {})[0];
  const read: Fields = entries === undefined ? exactKeys(properties, given) : readMap(entries, given);
  for (const [key, property] of Object.entries(properties)) {
    const value = read[key];
    if (value === undefined || (value === null && !accepts(property, 'null'))) {
      const fallback = initial(property);
      if (fallback !== undefined) read[key] = fallback;
      else if (shape.required?.includes(key) && accepts(property, 'object')) read[key] = readObject(property, {});
      else delete read[key];
    } else {
      read[key] = readBody(property, value);
    }
  }
  return read;
}

/**
 * A copy with keys as the schema spells them: where the exact key is missing, one that differs in case counts, as in
 * Go; of several the last.
 */
function exactKeys(properties: Properties, given: Fields): Fields {
  const read: Fields = { ...given };
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(properties, key)) continue;
    const exact = spellingOf(properties, key);
    if (exact === undefined) continue;
    if (!Object.hasOwn(given, exact)) read[exact] = given[key];
    delete read[key];
  }
  return read;
}

const spellings = new WeakMap<Properties, ReadonlyMap<string, string>>();

function spellingOf(properties: Properties, key: string): string | undefined {
  let known = spellings.get(properties);
  if (known === undefined) {
    known = new Map(Object.keys(properties).map((exact) => [exact.toLowerCase(), exact]));
    spellings.set(properties, known);
  }
  return known.get(key.toLowerCase());
}

function readMap(entries: ValueSchema, given: Fields): Fields {
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [key, value === null ? emptyOf(entries) : readBody(entries, value)]),
  );
}

function initial(schema: ValueSchema): unknown {
  return schema.default === undefined ? undefined : structuredClone(schema.default);
}

/** The value of a `null` entry: present and empty. */
function emptyOf(schema: ValueSchema): unknown {
  if (accepts(schema, 'null')) return null;
  if (accepts(schema, 'object')) return readObject(schema, {});
  if (accepts(schema, 'array')) return [];
  if (accepts(schema, 'string')) return '';
  if (accepts(schema, 'boolean')) return false;
  return accepts(schema, 'integer') || accepts(schema, 'number') ? 0 : null;
}

function accepts(schema: ValueSchema, type: string): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.some((part) => accepts(part, type));
  if ('const' in schema) return typeof schema.const === type;
  return Array.isArray(schema.type) ? schema.type.includes(type) : schema.type === type;
}

function objectOf(schema: ValueSchema): ValueSchema | undefined {
  if (schema.type === 'object') return schema;
  return schema.anyOf?.map(objectOf).find((part) => part !== undefined);
}

function listOf(schema: ValueSchema): ValueSchema | undefined {
  if (schema.type === 'array') return schema;
  return schema.anyOf?.map(listOf).find((part) => part !== undefined);
}
