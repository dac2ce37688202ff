import { BYTES, field, INTEGER, message, TEXT, UNSIGNED } from '../wire/message.ts';

/** Messages of `containerd.services.content.v1.Content/Write`. */
export const WriteAction = { STAT: 0, WRITE: 1, COMMIT: 2 } as const;
export const WriteContentRequest = message({
  action: field(1, UNSIGNED),
  /** A name of the upload. */
  ref: field(2, TEXT),
  total: field(3, INTEGER),
  /** The digest that it must have. */
  expected: field(4, TEXT),
  offset: field(5, INTEGER),
  data: field(6, BYTES),
});
export const WriteContentResponse = message({ action: field(1, UNSIGNED), offset: field(4, INTEGER) });
