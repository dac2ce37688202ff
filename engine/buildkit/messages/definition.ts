import { BYTES, field, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';

/** A graph of operations. Ours has one source: a result of a build, for another build of the same client. */
export const Definition = message({
  operations: list(1, BYTES),
  /** By the digests of operations. Clients refuse a graph without it. */
  metadata: map(2, BYTES),
});

const Input = message({ digest: field(1, TEXT), index: field(2, INTEGER) });
const Source = message({ identifier: field(1, TEXT) });
export const Operation = message({ inputs: list(1, nested(Input)), source: field(3, nested(Source)) });
