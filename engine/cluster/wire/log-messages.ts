import { Type, type Static } from 'typebox';

import { CountField, IdField, limitedText, MomentField } from '../../lib/notations/field-schemas.ts';
import type { ChannelLimits } from './allowance.ts';

const MB = 1024 * 1024;
/** Tasks of one node in one message. */
const MAX_TASKS = 10_000;

/** Lines of logs on one connection; more of them wait for time to pass. */
export const LOG_LIMITS: ChannelLimits = {
  maxLineLetters: 2 * MB,
  maxValues: 10_000,
  burstBytes: 16 * MB,
  bytesPerSecond: 10 * MB,
};

/** The selection of lines in the log of each task. */
export const LogOptions = Type.Object({
  stdout: Type.Boolean(),
  stderr: Type.Boolean(),
  follow: Type.Boolean(),
  /** The last lines of each task; missing for all. */
  tail: Type.Optional(CountField),
  since: Type.Optional(MomentField),
});
export type LogOptions = Readonly<Static<typeof LogOptions>>;

/** A manager's request to the leader: the log of a service, or of one task. */
export const LogRequest = Type.Object({
  service: Type.Optional(IdField),
  task: Type.Optional(IdField),
  options: LogOptions,
});
export type LogRequest = Readonly<Static<typeof LogRequest>>;

/** The leader asks a node for the logs of its tasks. `after`: the time of the last line that it has had before. */
export const LogsMessage = Type.Object({
  say: Type.Literal('logs'),
  number: CountField,
  options: LogOptions,
  tasks: Type.Array(Type.Object({ id: IdField, after: Type.Optional(MomentField) }), { maxItems: MAX_TASKS }),
});
export type LogsMessage = Readonly<Static<typeof LogsMessage>>;

/** The number of `LogsMessage` that a node's connection with lines belongs to. */
export const LogPublication = Type.Object({ number: CountField });

const line = {
  say: Type.Literal('line'),
  task: IdField,
  stream: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
  time: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{9}Z$' }),
  attributes: Type.Record(Type.String(), Type.String()),
  /** Base64. */
  text: Type.String(),
};

/** Messages of a node with logs; `sent` follows the last line of all its tasks, where nobody follows them. */
export const PublishedLog = Type.Union([
  Type.Object(line),
  Type.Object({ say: Type.Literal('unreadable'), task: IdField, reason: limitedText() }),
  Type.Object({ say: Type.Literal('sent') }),
]);
export type PublishedLog = Readonly<Static<typeof PublishedLog>>;

/** Messages of the leader to the manager whose client reads; `end` has the reasons why lines are missing. */
export const ReadLog = Type.Union([
  Type.Object({ ...line, node: IdField, service: IdField }),
  Type.Object({ say: Type.Literal('end'), missing: Type.Array(Type.String()) }),
]);
export type ReadLog = Readonly<Static<typeof ReadLog>>;
