import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

import { GrpcError, StatusCode } from './status.ts';

/** Fields of a message with all that are nested in it: 16 MiB could have eight millions, each of which takes memory and time. */
const MAX_FIELDS = 20_000;

/** A kind of value, as it is read and as it may be written. */
type Kind<Read, Written = Read> = Readonly<{
  wireType: WireType;
  /** The value of a field that was not sent. */
  initial: Read;
  read: (reader: BinaryReader) => Read;
  write: (writer: BinaryWriter, value: Written) => void;
}>;

/** A field under its number. */
type Field<Read, Written = Read> = Readonly<{
  number: number;
  wireType: WireType;
  initial: () => Read;
  /** Returns the value with what was read. */
  read: (reader: BinaryReader, before: Read) => Read;
  write: (writer: BinaryWriter, value: Written) => void;
}>;

type ReadOf<Each> = Each extends Readonly<{ initial: () => infer Read }> ? Read : never;
type WrittenOf<Each> =
  Each extends Readonly<{ write: (writer: BinaryWriter, value: infer Written) => void }> ? Written : never;

/** A message of the protocol: fields that are unknown are skipped, and those that are missing have their initial value. */
export type Message<Read, Written> = Readonly<{
  /** Throws `GrpcError` for bytes that are no such message, and for too many fields. */
  decode: (bytes: Uint8Array) => Read;
  encode: (value: Written) => Uint8Array;
}>;

/** The values of a message that was read, and of one that is sent. */
export type Received<Each> = Each extends Message<infer Read, never> ? Read : never;
export type Sent<Each> = Each extends Readonly<{ encode: (value: infer Written) => Uint8Array }> ? Written : never;

export const TEXT: Kind<string> = {
  wireType: WireType.LengthDelimited,
  initial: '',
  read: (reader) => reader.string(),
  write: (writer, value) => void writer.string(value),
};
export const BYTES: Kind<Uint8Array> = {
  wireType: WireType.LengthDelimited,
  initial: new Uint8Array(),
  read: (reader) => reader.bytes(),
  write: (writer, value) => void writer.bytes(value),
};
export const FLAG: Kind<boolean> = {
  wireType: WireType.Varint,
  initial: false,
  read: (reader) => reader.bool(),
  write: (writer, value) => void writer.bool(value),
};
/** Without a sign, below 2^32; also an enumeration. */
export const UNSIGNED: Kind<number> = {
  wireType: WireType.Varint,
  initial: 0,
  read: (reader) => reader.uint32(),
  write: (writer, value) => void writer.uint32(value),
};
/** 64 bits; beyond 2^53 it is inexact. */
export const INTEGER: Kind<number> = {
  wireType: WireType.Varint,
  initial: 0,
  read: (reader) => Number(reader.int64()),
  write: (writer, value) => void writer.int64(Math.trunc(value)),
};
/** 64 bits, exact. */
export const LARGE: Kind<bigint> = {
  wireType: WireType.Varint,
  initial: 0n,
  read: (reader) => BigInt(reader.int64()),
  write: (writer, value) => void writer.int64(value),
};

/** A message inside of another; undefined if it was not sent. */
export function nested<Read, Written>(inner: Message<Read, Written>): Kind<Read | undefined, Written | undefined> {
  return {
    wireType: WireType.LengthDelimited,
    initial: undefined,
    read: (reader) => inner.decode(reader.bytes()),
    write: (writer, value) => void writer.bytes(inner.encode(value!)),
  };
}

export function field<Read, Written>(number: number, kind: Kind<Read, Written>): Field<Read, Written> {
  return { ...kind, number, initial: () => kind.initial, read: (reader) => kind.read(reader) };
}

export function list<Read, Written>(
  number: number,
  kind: Kind<Read, Written>,
): Field<NonNullable<Read>[], readonly NonNullable<Written>[]> {
  return {
    number,
    wireType: kind.wireType,
    initial: () => [],
    read: (reader, before) => {
      before.push(kind.read(reader) as NonNullable<Read>);
      return before;
    },
    write: (writer, values) => {
      for (const [index, value] of values.entries()) {
        if (index > 0) writer.tag(number, kind.wireType);
        kind.write(writer, value);
      }
    },
  };
}

/** A map from texts. */
export function map<Read, Written>(
  number: number,
  kind: Kind<Read, Written>,
): Field<Map<string, NonNullable<Read>>, ReadonlyMap<string, NonNullable<Written>>> {
  const entry = message({ key: field(1, TEXT), value: field(2, kind) });
  const entries = list(number, nested(entry as Message<Entry<Read>, Entry<Written>>));
  return {
    ...entries,
    initial: () => new Map<string, NonNullable<Read>>(),
    read: (reader, before) => {
      const [{ key, value }] = entries.read(reader, []) as [Entry<Read>];
      return before.set(key, value as NonNullable<Read>);
    },
    write: (writer, values) =>
      entries.write(
        writer,
        [...values].map(([key, value]) => ({ key, value })),
      ),
  };
}

type Entry<Value> = { key: string; value: Value };

export function message<const All extends Readonly<Record<string, object>>>(
  fields: All,
): Message<
  { -readonly [Name in keyof All]: ReadOf<All[Name]> },
  { readonly [Name in keyof All]?: WrittenOf<All[Name]> }
> {
  const named = Object.entries(fields as unknown as Readonly<Record<string, Field<unknown>>>);
  const byNumber = new Map(named.map(([, each], place) => [each.number, { place, each }]));
  return {
    decode: (bytes) =>
      counted(() => {
        const values = named.map(([, { initial }]) => initial());
        const reader = new BinaryReader(bytes);
        while (reader.pos < reader.len) {
          countField();
          const [number, wireType] = reader.tag();
          const known = byNumber.get(number);
          if (known === undefined || known.each.wireType !== wireType) reader.skip(wireType, number);
          else values[known.place] = known.each.read(reader, values[known.place]);
        }
        const result: Record<string, unknown> = {};
        for (const [place, [name]] of named.entries()) result[name] = values[place];
        return result as never;
      }),
    encode: (value) => {
      const writer = new BinaryWriter();
      for (const [name, each] of named) {
        const given = (value as Readonly<Record<string, unknown>>)[name];
        if (given === undefined || isEmpty(given)) continue;
        writer.tag(each.number, each.wireType);
        each.write(writer, given);
      }
      return writer.finish();
    },
  };
}

/** Fields of the message that is being decoded, and messages around the current one. */
let [fields, depth] = [0, 0];

function countField(): void {
  fields += 1;
  if (fields > MAX_FIELDS)
    throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, `a message has more than ${MAX_FIELDS} fields`);
}

function counted<Read>(decode: () => Read): Read {
  if (depth === 0) fields = 0;
  depth += 1;
  try {
    return decode();
  } catch (error) {
    if (error instanceof GrpcError) throw error;
    throw new GrpcError(StatusCode.INVALID_ARGUMENT, 'a message cannot be decoded', [], { cause: error });
  } finally {
    depth -= 1;
  }
}

/** An empty list or map has no tag. */
function isEmpty(value: unknown): boolean {
  return (Array.isArray(value) && value.length === 0) || (value instanceof Map && value.size === 0);
}
