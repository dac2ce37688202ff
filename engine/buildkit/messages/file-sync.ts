import { BYTES, field, INTEGER, LARGE, map, message, TEXT, UNSIGNED } from '../wire/message.ts';

/** Messages of `moby.filesync.v1.FileSync`. */
export const Stat = message({
  path: field(1, TEXT),
  /** As Go writes it: permissions, and the type in the high bits. */
  mode: field(2, UNSIGNED),
  uid: field(3, UNSIGNED),
  gid: field(4, UNSIGNED),
  size: field(5, INTEGER),
  /** Nanoseconds since 1970. */
  modified: field(6, LARGE),
  linkName: field(7, TEXT),
  deviceMajor: field(8, INTEGER),
  deviceMinor: field(9, INTEGER),
  attributes: map(10, BYTES),
});

/** The parts of a `Stat` that every use needs; the rest is skipped. */
export const StatName = message({ path: field(1, TEXT), size: field(5, INTEGER), linkName: field(7, TEXT) });

export const PacketType = { STAT: 0, REQUEST: 1, DATA: 2, FIN: 3, ERROR: 4 } as const;
export const Packet = message({
  type: field(1, UNSIGNED),
  /** A `Stat`; empty behind the last one. */
  stat: field(2, BYTES),
  /** The place of the file among the stats, from 0. */
  id: field(3, UNSIGNED),
  data: field(4, BYTES),
});
