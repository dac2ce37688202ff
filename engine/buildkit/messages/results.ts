import { BYTES, field, INTEGER, list, message, nested, TEXT } from '../wire/message.ts';
import { Platform } from './common.ts';
import { Stat } from './file-sync.ts';

/** Messages of `LLBBridge` about results of a build, and about images. */
const Range = message({ offset: field(1, INTEGER), length: field(2, INTEGER) });
export const ReadFileRequest = message({
  ref: field(1, TEXT),
  path: field(2, TEXT),
  range: field(3, nested(Range)),
});
export const ReadFileResponse = message({ data: field(1, BYTES) });

export const ReadDirRequest = message({ ref: field(1, TEXT), path: field(2, TEXT), pattern: field(3, TEXT) });
export const ReadDirResponse = message({ entries: list(1, nested(Stat)) });

export const StatFileRequest = message({ ref: field(1, TEXT), path: field(2, TEXT) });
export const StatFileResponse = message({ stat: field(1, nested(Stat)) });

export const EvaluateRequest = message({ ref: field(1, TEXT) });

export const WarnRequest = message({
  vertex: field(1, TEXT),
  level: field(2, INTEGER),
  short: field(3, BYTES),
  detail: list(4, BYTES),
  url: field(5, TEXT),
});

export const ResolveImageRequest = message({
  name: field(1, TEXT),
  platform: field(2, nested(Platform)),
  /** `pull`: from its registry even if it is here. */
  mode: field(3, TEXT),
});
export const ResolveImageResponse = message({ digest: field(1, TEXT), config: field(2, BYTES), name: field(3, TEXT) });
