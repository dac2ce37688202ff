import { BYTES, field, FLAG, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';
import { Platform, TypeAndAttributes, Worker } from './common.ts';
import { Stat } from './file-sync.ts';

/** Messages of the service `moby.buildkit.v1.frontend.LLBBridge`. */
const Capability = message({ id: field(1, TEXT), isEnabled: field(2, FLAG) });
export const PingResponse = message({
  frontendCapabilities: list(1, nested(Capability)),
  graphCapabilities: list(2, nested(Capability)),
  workers: list(3, nested(Worker)),
});

const Ref = message({ id: field(1, TEXT) });
const RefMap = message({ refs: map(1, nested(Ref)) });
export const Result = message({
  ref: field(3, nested(Ref)),
  refs: field(4, nested(RefMap)),
  metadata: map(10, BYTES),
});

export const SolveRequest = message({
  /** A graph of operations, which this builder does not take. */
  definition: field(1, BYTES),
  frontend: field(2, TEXT),
  options: map(3, TEXT),
  cacheImports: list(12, nested(TypeAndAttributes)),
  inputs: map(13, BYTES),
  evaluates: field(14, FLAG),
});
export const SolveResponse = message({ result: field(3, nested(Result)) });

const Failure = message({ code: field(1, INTEGER), message: field(2, TEXT) });
export const ReturnRequest = message({ result: field(1, nested(Result)), error: field(2, nested(Failure)) });

export const EvaluateRequest = message({ ref: field(1, TEXT) });
const FileRange = message({ offset: field(1, INTEGER), length: field(2, INTEGER) });
export const ReadFileRequest = message({
  ref: field(1, TEXT),
  path: field(2, TEXT),
  range: field(3, nested(FileRange)),
});
export const ReadFileResponse = message({ data: field(1, BYTES) });
export const ReadDirRequest = message({ ref: field(1, TEXT), path: field(2, TEXT), pattern: field(3, TEXT) });
export const ReadDirResponse = message({ entries: list(1, nested(Stat)) });
export const StatFileRequest = message({ ref: field(1, TEXT), path: field(2, TEXT) });
export const StatFileResponse = message({ stat: field(1, nested(Stat)) });

export const ResolveImageConfigRequest = message({
  ref: field(1, TEXT),
  platform: field(2, nested(Platform)),
  resolveMode: field(3, TEXT),
});
export const ResolveImageConfigResponse = message({
  digest: field(1, TEXT),
  config: field(2, BYTES),
  ref: field(3, TEXT),
});

export const WarnRequest = message({
  vertex: field(1, TEXT),
  level: field(2, INTEGER),
  short: field(3, BYTES),
  detail: list(4, BYTES),
  url: field(5, TEXT),
});
