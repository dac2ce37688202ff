import { Type, type Static } from 'typebox';

import { sha256 } from '../../layers/chain-id.ts';
import { timeOf } from '../messages/common.ts';
import type { HistoryRecord } from '../messages/history.ts';
import type { Sent } from '../wire/message.ts';

const Texts = Type.Record(Type.String(), Type.String());

/** A build that is over, as it is stored. */
export const BuildRecord = Type.Object({
  ref: Type.String(),
  attributes: Texts,
  exporters: Type.Array(Type.Object({ type: Type.String(), attributes: Texts })),
  createdAt: Type.String(),
  completedAt: Type.Optional(Type.String()),
  response: Texts,
  /** The configuration of the resulting image. */
  config: Type.Optional(Type.Object({ digest: Type.String(), size: Type.Number() })),
  /** `status`: a `google.rpc.Status` in base64. */
  error: Type.Optional(Type.Object({ code: Type.Number(), message: Type.String(), status: Type.String() })),
  steps: Type.Object({ total: Type.Number(), cached: Type.Number(), completed: Type.Number() }),
  warnings: Type.Number(),
  isPinned: Type.Boolean(),
});
export type BuildRecord = Readonly<Static<typeof BuildRecord>>;

const CONFIG_TYPE = 'application/vnd.docker.container.image.v1+json';
const ERROR_TYPE = 'application/vnd.googleapis.google.rpc.status+proto';

/** A record as clients read it. */
export function presentRecord(record: BuildRecord): Sent<typeof HistoryRecord> {
  const { attributes, exporters, response, config, error, steps, createdAt, completedAt } = record;
  return {
    ref: record.ref,
    frontend: 'dockerfile.v0',
    attributes: new Map(Object.entries(attributes)),
    exporters: exporters.map((each) => ({ type: each.type, attributes: new Map(Object.entries(each.attributes)) })),
    createdAt: timeOf(Temporal.Instant.from(createdAt)),
    ...(completedAt !== undefined && { completedAt: timeOf(Temporal.Instant.from(completedAt)) }),
    response: new Map(Object.entries(response)),
    ...(config && { result: { results: [{ key: 0, value: { mediaType: CONFIG_TYPE, ...config } }] } }),
    ...(error && { error: { code: error.code, message: error.message }, externalError: errorDocument(error.status) }),
    isPinned: record.isPinned,
    totalSteps: steps.total,
    cachedSteps: steps.cached,
    completedSteps: steps.completed,
    warnings: record.warnings,
  };
}

function errorDocument(status: string): { mediaType: string; digest: string; size: number } {
  const bytes = Buffer.from(status, 'base64');
  return { mediaType: ERROR_TYPE, digest: sha256(bytes), size: bytes.length };
}
