import { BYTES, field, FLAG, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';
import { BuilderVersion, Timestamp, TypeAndAttributes, Worker } from './common.ts';
import { Definition } from './definition.ts';

/** Messages of the service `moby.buildkit.v1.Control`. */
export const ListWorkersRequest = message({ filter: list(1, TEXT) });
export const ListWorkersResponse = message({ workers: list(1, nested(Worker)) });
export const InfoResponse = message({ version: field(1, nested(BuilderVersion)) });

export const CacheOptions = message({
  exports: list(4, nested(TypeAndAttributes)),
  imports: list(5, nested(TypeAndAttributes)),
});

export const SolveRequest = message({
  ref: field(1, TEXT),
  /** A graph of operations, which this builder does not take. */
  definition: field(2, BYTES),
  exporter: field(3, TEXT),
  exporterAttributes: map(4, TEXT),
  session: field(5, TEXT),
  frontend: field(6, TEXT),
  frontendOptions: map(7, TEXT),
  cache: field(8, nested(CacheOptions)),
  entitlements: list(9, TEXT),
  inputs: map(10, nested(Definition)),
  /** Left out of the history of builds. */
  isInternal: field(11, FLAG),
  exporters: list(13, nested(TypeAndAttributes)),
});
export const SolveResponse = message({ exporter: map(1, TEXT) });

export const StatusRequest = message({ ref: field(1, TEXT) });
const Vertex = message({
  digest: field(1, TEXT),
  inputs: list(2, TEXT),
  name: field(3, TEXT),
  cached: field(4, FLAG),
  started: field(5, nested(Timestamp)),
  completed: field(6, nested(Timestamp)),
  error: field(7, TEXT),
});
const VertexStatus = message({
  id: field(1, TEXT),
  vertex: field(2, TEXT),
  name: field(3, TEXT),
  current: field(4, INTEGER),
  total: field(5, INTEGER),
  timestamp: field(6, nested(Timestamp)),
  started: field(7, nested(Timestamp)),
  completed: field(8, nested(Timestamp)),
});
const VertexLog = message({
  vertex: field(1, TEXT),
  timestamp: field(2, nested(Timestamp)),
  /** 1: stdout, 2: stderr. */
  stream: field(3, INTEGER),
  text: field(4, BYTES),
});
const VertexWarning = message({
  vertex: field(1, TEXT),
  level: field(2, INTEGER),
  short: field(3, BYTES),
  detail: list(4, BYTES),
  url: field(5, TEXT),
});
export const StatusResponse = message({
  vertexes: list(1, nested(Vertex)),
  statuses: list(2, nested(VertexStatus)),
  logs: list(3, nested(VertexLog)),
  warnings: list(4, nested(VertexWarning)),
});

export const DiskUsageRequest = message({ filter: list(1, TEXT) });
const UsageRecord = message({
  id: field(1, TEXT),
  isMutable: field(2, FLAG),
  isInUse: field(3, FLAG),
  size: field(4, INTEGER),
  createdAt: field(6, nested(Timestamp)),
  lastUsedAt: field(7, nested(Timestamp)),
  usageCount: field(8, INTEGER),
  description: field(9, TEXT),
  type: field(10, TEXT),
  isShared: field(11, FLAG),
});
export const DiskUsageResponse = message({ records: list(1, nested(UsageRecord)) });
export const PruneRequest = message({
  filter: list(1, TEXT),
  all: field(2, FLAG),
  /** Nanoseconds. */
  keepDuration: field(3, INTEGER),
  reservedSpace: field(4, INTEGER),
  maxUsedSpace: field(5, INTEGER),
  minFreeSpace: field(6, INTEGER),
});
export const PruneResponse = UsageRecord;
