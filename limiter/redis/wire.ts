import { bitsOf, type Endpoints } from '../endpoints.ts';
import {
  CATEGORIES,
  type Ask,
  type CallerState,
  type LimitRules,
  type LimitWindow,
  type Verdict,
  type WindowState,
} from '../types.ts';
import type { Batch } from './batch.ts';
import { KINDS, type Operation } from './operation.ts';

/** The kind of a decision, or of a change to one. */
type Decision = Readonly<{ ask: Ask; change: number }>;

const DECISION_BYTES = 29;
/** Flag in the length of a window: the window slides. */
const SLIDES = 2 ** 31;
const GRAPHQL = 1;
const CONTENT = 2;
const PRIMARY = 4;
const ADDS_POINTS = 8;
const GIVES_BACK = 16;
/** So many decisions are searched for an equal one: sending one twice costs less than a longer search. */
const RECENT_DECISIONS = 8;
const OPERATION_BYTES = 8;
const VERDICT_BYTES = 14;
const MARK = 0x80;
const NO_LIMIT = 0xff_ff_ff_ff;
/** A hash leaves room for the kind of an endpoint's window. */
const WINDOW_KINDS = 4;

/** The time, the rules, and where the operations begin. */
const HEADER_BYTES = 76;

/** The process that makes a call. */
type Sender = Readonly<{
  /** 0: the server's clock. */
  nowMs: number;
  gateway: number;
  leaseSeconds: number;
  /** The server's time when it last said something, or before its last long silence; 0: unknown. */
  heardSeconds: number;
}>;

/** The script's one argument: the rules, the kinds of decisions, each caller's operations in the order of the keys. */
export function encodeCall(batch: Batch, sender: Sender): Buffer {
  const decisions: Decision[] = [];
  const kinds: number[] = [];
  for (const { operations } of batch.shares) {
    for (const { kind, ask } of operations) {
      kinds.push(ask === undefined ? KINDS.indexOf(kind as (typeof KINDS)[number]) : kindOf(ask, kind, decisions));
    }
  }
  const operationsAt = HEADER_BYTES + decisions.length * DECISION_BYTES;
  const out = Buffer.allocUnsafe(operationsAt + batch.size * OPERATION_BYTES + batch.shares.length * 2);
  encodeHeader(out, batch.rules, sender, operationsAt);
  encodeDecisions(out, decisions);
  let at = operationsAt;
  let next = 0;
  for (const { operations } of batch.shares) {
    at = out.writeUInt16LE(operations.length, at);
    for (const { count, amount } of operations) {
      at = out.writeUInt16LE(kinds[next]!, at);
      at = out.writeUInt16LE(count, at);
      at = out.writeUInt32LE(amount, at);
      next += 1;
    }
  }
  return out;
}

function encodeHeader(
  out: Buffer,
  rules: LimitRules,
  { nowMs, gateway, leaseSeconds, heardSeconds }: Sender,
  operationsAt: number,
): void {
  const { concurrent, restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = rules;
  let at = out.writeDoubleLE(nowMs, 0);
  for (const number of [
    operationsAt,
    gateway,
    leaseSeconds,
    heardSeconds,
    concurrent.limit,
    restPoints.limit,
    spanOf(restPoints),
    graphqlPoints.limit,
    spanOf(graphqlPoints),
    cpu.totalSeconds * 1e6,
    cpu.graphqlSeconds * 1e6,
    spanOf(cpu),
    contentPerMinute.limit,
    spanOf(contentPerMinute),
    contentPerHour.limit,
    spanOf(contentPerHour),
    bitsOf(rules.shadow),
  ]) {
    at = out.writeUInt32LE(Math.min(number, NO_LIMIT), at);
  }
}

function spanOf({ windowSeconds, window }: LimitWindow): number {
  return window === 'sliding' ? windowSeconds + SLIDES : windowSeconds;
}

/** The number of a decision's kind, which is added to `decisions` where it is missing. */
function kindOf(ask: Ask, kind: Operation['kind'], decisions: Decision[]): number {
  const change = kind === 'points' ? ADDS_POINTS : kind === 'give-back' ? GIVES_BACK : 0;
  const last = decisions.length - 1;
  for (let n = last; n >= 0 && n > last - RECENT_DECISIONS; n -= 1) {
    const { ask: like, change: itsChange } = decisions[n]!;
    if (like.endpoint !== ask.endpoint || itsChange !== change) continue;
    if (like.quota === ask.quota && like.points === ask.points) return KINDS.length + n;
  }
  return KINDS.length + decisions.push({ ask, change }) - 1;
}

function encodeDecisions(out: Buffer, decisions: readonly Decision[]): void {
  let at = HEADER_BYTES;
  for (const { ask, change } of decisions) {
    const { endpoint, rules, quota, points } = ask;
    const { graphql, content, primary } = endpoint;
    const flags = (graphql ? GRAPHQL : 0) + (content ? CONTENT : 0) + (primary ? PRIMARY : 0) + change;
    at = out.writeUInt8(flags, at);
    at = out.writeUInt8(endpoint.categoryIndex, at);
    at = out.writeUInt8(endpoint.shadow, at);
    at = out.writeUInt32LE(Math.min(quota, NO_LIMIT), at);
    at = out.writeUInt32LE(spanOf(rules.categories[endpoint.category]), at);
    at = out.writeUIntLE(endpoint.hash * WINDOW_KINDS, at, 6);
    at = out.writeUInt32LE(points, at);
    at = out.writeUInt32LE(Math.min(endpoint.contentPerMinute, NO_LIMIT), at);
    at = out.writeUInt32LE(Math.min(endpoint.contentPerHour, NO_LIMIT), at);
  }
}

/** `crowded`: admitted as one of more than half; or refused, and other gateways' requests are among those under way. */
export type MarkedVerdict = Verdict & Readonly<{ crowded: boolean }>;

/** Stands in place of the refusing limit: the caller's value is foreign. */
export const FOREIGN = 254;

/** The script's answer: its time, then a verdict for each decision and for content. */
export function decodeVerdicts(reply: Buffer): { nowMs: number; verdicts: MarkedVerdict[] } {
  const nowMs = reply.readDoubleLE(0);
  const verdicts: MarkedVerdict[] = [];
  for (let at = 8; at < reply.length; at += VERDICT_BYTES) {
    verdicts.push({
      refusedBy: reply[at]! - 1,
      shadowed: reply[at + 1]! & ~MARK,
      crowded: (reply[at + 1]! & MARK) !== 0,
      until: reply.readUInt32LE(at + 2),
      used: reply.readUInt32LE(at + 6),
      reset: reply.readUInt32LE(at + 10),
      nowMs,
      ticket: 0,
    });
  }
  return { nowMs, verdicts };
}

const FIXED_WINDOWS = [
  { name: 'core', end: 1, used: 31, scale: 1 },
  { name: 'content-minute', end: 5, used: 35, scale: 1 },
  { name: 'content-hour', end: 9, used: 39, scale: 1 },
  { name: 'cpu', end: 61, used: 53, scale: 1000 },
  { name: 'graphql-cpu', end: 61, used: 57, scale: 1000 },
] as const;

/** The steps of those that slide, by the ids that the script has for them. */
const STEPS: Readonly<Record<number, { name: string; scale: number }>> = {
  10: { name: 'content-minute', scale: 1 },
  11: { name: 'content-hour', scale: 1 },
  12: { name: 'cpu', scale: 1000 },
  13: { name: 'graphql-cpu', scale: 1000 },
};

const VERSION = 1;
const MORE_LEASES = 13;
const MORE_WINDOWS = 15;
/** The first of them is in the middle of the value, in another order than the further ones. */
const FIRST_WINDOW = { id: 17, end: 23, used: 27 } as const;
const FIRST_LEASE = { believed: 47, count: 51 } as const;
const FIXED_BYTES = 65;
const LEASE_BYTES = 10;
const WINDOW_BYTES = 14;

/** A caller's value in Redis is of another type, or was written by another version. */
export class ForeignValue extends Error {
  override readonly name = 'ForeignValue';

  constructor(redisKey: string) {
    super(`the value of ${redisKey} was not written by this version of Gantry`);
  }
}

/** Did the script of this version write it? */
export function isOurs(value: Buffer): boolean {
  if (value.length < FIXED_BYTES || value[0] !== VERSION) return false;
  const further = value.readUInt16LE(MORE_LEASES) * LEASE_BYTES + value.readUInt16LE(MORE_WINDOWS) * WINDOW_BYTES;
  return value.length === FIXED_BYTES + further;
}

/** A caller's value as the script wrote it. */
export function decodeState(key: string, value: Buffer | null, nowMs: number, endpoints: Endpoints): CallerState {
  const now = Math.floor(nowMs / 1000);
  if (value === null) return { key, underWay: 0, windows: [] };
  const windows: WindowState[] = [];
  for (const { name, used, end, scale } of FIXED_WINDOWS) {
    const reset = value.readUInt32LE(end);
    if (reset > now) windows.push({ name, used: value.readUInt32LE(used) / scale, reset });
  }
  const firstMoreWindow = FIXED_BYTES + value.readUInt16LE(MORE_LEASES) * LEASE_BYTES;
  const moreWindows = places(firstMoreWindow, value.readUInt16LE(MORE_WINDOWS), WINDOW_BYTES);
  for (const at of [FIRST_WINDOW, ...moreWindows.map((id) => ({ id, used: id + 6, end: id + 10 }))]) {
    const reset = value.readUInt32LE(at.end);
    if (reset <= now) continue;
    const id = value.readUIntLE(at.id, 6);
    const scale = STEPS[id]?.scale ?? 1;
    windows.push({ name: windowName(id, endpoints), used: value.readUInt32LE(at.used) / scale, reset });
  }
  const moreLeases = places(FIXED_BYTES, value.readUInt16LE(MORE_LEASES), LEASE_BYTES);
  let underWay = 0;
  for (const at of [FIRST_LEASE, ...moreLeases.map((count) => ({ count, believed: count + 6 }))]) {
    if (value.readUInt32LE(at.believed) > now) underWay += value.readUInt16LE(at.count);
  }
  return { key, underWay, windows };
}

function places(start: number, count: number, bytes: number): number[] {
  return Array.from({ length: count }, (_, n) => start + n * bytes);
}

/** Name of an endpoint here; another gateway may have routes that this one has not. */
function windowName(id: number, endpoints: Endpoints): string {
  if (id < CATEGORIES.length) return CATEGORIES[id] ?? '';
  const step = STEPS[id];
  if (step !== undefined) return step.name;
  const kind = ['points', 'content-minute', 'content-hour'][id % WINDOW_KINDS] ?? 'window';
  const hash = Math.floor(id / WINDOW_KINDS);
  return `${kind} ${endpoints.nameOf(hash) ?? `endpoint ${hash.toString(16)}`}`;
}
