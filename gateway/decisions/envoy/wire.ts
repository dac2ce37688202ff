/**
 * The messages of Envoy's rate limit service in protobuf's encoding (`envoy/service/ratelimit/v3/rls.proto`). Unknown
 * fields are skipped.
 */

/** Bytes that are no message of the protocol. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

export type Descriptor = Readonly<{
  entries: readonly (readonly [key: string, value: string])[];
  /** How many requests it stands for; undefined: as many as the whole question does. */
  hits: number | undefined;
}>;

export type Question = Readonly<{ descriptors: readonly Descriptor[]; hits: number }>;

export const OK = 1;
export const OVER_LIMIT = 2;

export type Status = Readonly<{
  code: typeof OK | typeof OVER_LIMIT;
  limit: number;
  /** Length of its window; the protocol has names for some. */
  windowSeconds: number;
  name: string;
  remaining: number;
  resetSeconds: number;
}>;

export type Answer = Readonly<{
  code: typeof OK | typeof OVER_LIMIT;
  statuses: readonly Status[];
  /** For the response to the client. */
  headers: Readonly<Record<string, string>>;
  body: string;
}>;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Units of a limit by their seconds; 0: another length. */
const UNITS: ReadonlyMap<number, number> = new Map([
  [1, 1],
  [60, 2],
  [3600, 3],
  [86_400, 4],
]);
const MAX_UINT32 = 2 ** 32 - 1;

export function decodeQuestion(bytes: Buffer): Question {
  const descriptors: Descriptor[] = [];
  let hits = 0;
  for (const { field, value } of fieldsOf(bytes)) {
    if (field === 2) descriptors.push(decodeDescriptor(bytesOf(value)));
    if (field === 3) hits = numberOf(value);
  }
  return { descriptors, hits: hits === 0 ? 1 : hits };
}

function decodeDescriptor(bytes: Buffer): Descriptor {
  const entries: [string, string][] = [];
  let hits: number | undefined;
  for (const { field, value } of fieldsOf(bytes)) {
    if (field === 1) entries.push(decodeEntry(bytesOf(value)));
    // A message with one number, so that 0 differs from nothing.
    if (field === 3) hits = [...fieldsOf(bytesOf(value))].reduce((last, inner) => numberOf(inner.value), 0);
  }
  return { entries, hits };
}

function decodeEntry(bytes: Buffer): [string, string] {
  const texts: [string, string] = ['', ''];
  for (const { field, value } of fieldsOf(bytes)) {
    if (field === 1 || field === 2) texts[field - 1] = bytesOf(value).toString('utf8');
  }
  return texts;
}

export function encodeAnswer({ code, statuses, headers, body }: Answer): Buffer {
  return Buffer.concat([
    varintField(1, code),
    ...statuses.map((status) => bytesField(2, encodeStatus(status))),
    ...Object.entries(headers).map(([name, value]) => bytesField(3, encodeHeader(name, value))),
    ...(body === '' ? [] : [bytesField(5, Buffer.from(body))]),
  ]);
}

function encodeStatus({ code, limit, windowSeconds, name, remaining, resetSeconds }: Status): Buffer {
  const current = [
    varintField(1, Math.min(limit, MAX_UINT32)),
    varintField(2, UNITS.get(windowSeconds) ?? 0),
    bytesField(3, Buffer.from(name)),
  ];
  return Buffer.concat([
    varintField(1, code),
    bytesField(2, Buffer.concat(current)),
    varintField(3, Math.min(remaining, MAX_UINT32)),
    bytesField(4, varintField(1, Math.max(0, resetSeconds))),
  ]);
}

function encodeHeader(name: string, value: string): Buffer {
  return Buffer.concat([bytesField(1, Buffer.from(name)), bytesField(2, Buffer.from(value))]);
}

type Field = Readonly<{ field: number; value: number | Buffer }>;

function* fieldsOf(bytes: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at];
      if (byte === undefined) throw new WireError('the message ends in the middle of a number');
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new WireError('a number has more than ten bytes');
  };
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) throw new WireError('a field is longer than its message');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = varint();
    const field = Math.floor(key / 8);
    const kind = key % 8;
    if (field === 0) throw new WireError('a field has number 0');
    if (kind === VARINT) yield { field, value: varint() };
    else if (kind === BYTES) yield { field, value: take(varint()) };
    else if (kind === FIXED64 || kind === FIXED32) take(kind === FIXED64 ? 8 : 4);
    else throw new WireError(`a field has the unknown kind ${kind}`);
  }
}

function bytesOf(value: number | Buffer): Buffer {
  if (typeof value === 'number') throw new WireError('a number stands in the place of a message');
  return value;
}

function numberOf(value: number | Buffer): number {
  if (typeof value !== 'number') throw new WireError('a message stands in the place of a number');
  return value;
}

function varintField(field: number, value: number): Buffer {
  return Buffer.from([field * 8 + VARINT, ...varintOf(value)]);
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([field * 8 + BYTES, ...varintOf(bytes.length)]), bytes]);
}

function varintOf(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return [...bytes, rest];
}
