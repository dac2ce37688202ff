import { BYTES, field, FLAG, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';
import { Worker } from './common.ts';
import { Definition } from './definition.ts';

/** Messages of the service `moby.buildkit.v1.frontend.LLBBridge`. */
const Capability = message({ id: field(1, TEXT), isEnabled: field(2, FLAG) });
export const PingResponse = message({
  frontendCapabilities: list(1, nested(Capability)),
  graphCapabilities: list(2, nested(Capability)),
  workers: list(3, nested(Worker)),
});

const Ref = message({ id: field(1, TEXT), definition: field(2, nested(Definition)) });
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
  /** Results of other builds, for named contexts. */
  inputs: map(13, nested(Definition)),
});
export const SolveResponse = message({ result: field(3, nested(Result)) });

const Failure = message({ code: field(1, INTEGER), message: field(2, TEXT) });
export const ReturnRequest = message({ result: field(1, nested(Result)), error: field(2, nested(Failure)) });
