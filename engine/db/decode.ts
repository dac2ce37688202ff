import { Type, type Static, type TSchema } from 'typebox';
import Schema from 'typebox/schema';

/** A time in a record: text in the database, a `Temporal.Instant` in memory. */
export const Instant = Type.Unsafe<Temporal.Instant>({ type: 'string', instant: true });

/** Converts one version of a record to the next, and never changes again: `old` was written by an earlier daemon. */
export type Upgrade = (old: Record<string, unknown>) => Record<string, unknown>;

type Kind<S extends TSchema> = Readonly<{ schema: S; upgrades?: readonly Upgrade[] }>;
type Check = Readonly<{ Check(value: unknown): boolean; Errors(value: unknown): [boolean, readonly Mistake[]] }>;
type Mistake = Readonly<{ instancePath: string; message: string }>;
type Convert = (value: unknown) => unknown;

/** Decodes stored records. Compiled at the first record, so that an empty table costs nothing. */
export class Decoder<S extends TSchema> {
  readonly #kind: Kind<S>;
  #compiled: { check: Check; convert: Convert } | undefined;

  constructor(kind: Kind<S>) {
    this.#kind = kind;
  }

  /** The version in which records are written. */
  get version(): number {
    return 1 + (this.#kind.upgrades?.length ?? 0);
  }

  /** Throws with the reason if the text is not a record of this kind. */
  decode(version: number, text: string): Static<S> {
    if (version > this.version) {
      throw new TypeError(`it has version ${version}, which is newer than this daemon's ${this.version}`);
    }
    const steps = this.#kind.upgrades?.slice(version - 1) ?? [];
    const record: unknown = steps.reduce((old, step) => step(old), JSON.parse(text));
    this.#compiled ??= { check: Schema.Compile(this.#kind.schema), convert: instantsOf(this.#kind.schema) ?? same };
    const { check, convert } = this.#compiled;
    if (!check.Check(record)) throw new TypeError(problemOf(check.Errors(record)[1]));
    return convert(record) as Static<S>;
  }
}

function same(value: unknown): unknown {
  return value;
}

/** The deepest error is the most useful: of several variants, the intended one fits best. */
function problemOf(mistakes: readonly Mistake[]): string {
  const depth = ({ instancePath }: Mistake): number => instancePath.split('/').length;
  const { instancePath = '', message = 'not as expected' } = mistakes.toSorted((a, b) => depth(b) - depth(a))[0] ?? {};
  return `${instancePath === '' ? 'it' : `its field ${instancePath.slice(1).replaceAll('/', '.')}`} ${message}`;
}

/** Converts the texts of the schema's instants in place; undefined for a schema without instants. */
function instantsOf(schema: TSchema): Convert | undefined {
  const { instant, properties, items, anyOf } = schema as Parts;
  if (instant === true) return toInstant;
  if (anyOf !== undefined) return inUnion(anyOf);
  if (properties !== undefined) return inObject(properties);
  const ofItem = items === undefined ? undefined : instantsOf(items);
  return ofItem && ((value) => (value as unknown[]).map(ofItem));
}

type Parts = {
  instant?: boolean;
  properties?: Record<string, TSchema>;
  items?: TSchema;
  anyOf?: TSchema[];
};

function toInstant(value: unknown): Temporal.Instant {
  try {
    return Temporal.Instant.from(value as string);
  } catch (error) {
    throw new TypeError(`${JSON.stringify(value)} is not a time`, { cause: error });
  }
}

function inObject(properties: Readonly<Record<string, TSchema>>): Convert | undefined {
  const fields = Object.entries(properties).flatMap(([name, schema]) => {
    const convert = instantsOf(schema);
    return convert === undefined ? [] : [{ name, convert }];
  });
  if (fields.length === 0) return undefined;
  return (value) => {
    const object = value as Record<string, unknown>;
    for (const { name, convert } of fields) if (object[name] !== undefined) object[name] = convert(object[name]);
    return object;
  };
}

function inUnion(forms: readonly TSchema[]): Convert | undefined {
  const converts = forms.map(instantsOf);
  if (converts.every((convert) => convert === undefined)) return undefined;
  const checks: Check[] = forms.map((form) => Schema.Compile(form));
  return (value) => converts[checks.findIndex((check) => check.Check(value))]?.(value) ?? value;
}
