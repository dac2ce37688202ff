import { endpointNames, hashOf } from '../endpoints.ts';
import {
  CATEGORIES,
  type Ask,
  type CallerState,
  LIMITS,
  type LimitRules,
  type Verdict,
  type WindowState,
} from '../types.ts';

/** What is done to a caller; the script knows these numbers. */
export const OPERATIONS = { decide: 0, release: 1, content: 2, renew: 3 } as const;

export type Operation = {
  kind: keyof typeof OPERATIONS;
  /** Of a decision or a release. */
  ask?: Ask;
  /** Microseconds of CPU time, pieces of content, or requests under way. */
  amount: number;
  /** The answer to a decision, once it is there. */
  verdict?: Verdict;
  resolve?: (verdict: Verdict) => void;
  reject?: (error: unknown) => void;
};

const OPERATION_BYTES = 32;
const VERDICT_BYTES = 14;
const NO_LIMIT = 0xff_ff_ff_ff;
/** A hash leaves room for the kind of an endpoint's window. */
const KINDS = 4;

/** The rules and who asks. `nowMs` 0: the server's clock. */
export function encodeHeader(rules: LimitRules, nowMs: number, gateway: number, leaseSeconds: number): Buffer {
  const shadow = rules.shadow.reduce((bits, name) => bits | (1 << LIMITS.indexOf(name)), 0);
  const { concurrent, restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = rules;
  const numbers = [
    gateway,
    leaseSeconds,
    concurrent.limit,
    restPoints.limit,
    restPoints.windowSeconds,
    graphqlPoints.limit,
    graphqlPoints.windowSeconds,
    cpu.totalSeconds * 1e6,
    cpu.graphqlSeconds * 1e6,
    cpu.windowSeconds,
    contentPerMinute.limit,
    contentPerMinute.windowSeconds,
    contentPerHour.limit,
    contentPerHour.windowSeconds,
    shadow,
  ];
  const header = Buffer.alloc(8 + numbers.length * 4);
  header.writeDoubleLE(nowMs, 0);
  for (const [index, number] of numbers.entries()) header.writeUInt32LE(number, 8 + index * 4);
  return header;
}

/** Each caller's operations, in the order of the keys. */
export function encodeOperations(callers: Iterable<readonly Operation[]>, count: number, keys: number): Buffer {
  const out = Buffer.allocUnsafe(count * OPERATION_BYTES + keys * 2);
  let at = 0;
  for (const operations of callers) {
    at = out.writeUInt16LE(operations.length, at);
    for (const operation of operations) at = encodeOperation(out, at, operation);
  }
  return out;
}

function encodeOperation(out: Buffer, start: number, { kind, ask, amount }: Operation): number {
  let at = start;
  if (ask === undefined) {
    out.fill(0, at, at + OPERATION_BYTES);
    out[at] = OPERATIONS[kind];
    out.writeUInt32LE(amount, at + OPERATION_BYTES - 4);
    return at + OPERATION_BYTES;
  }
  const { endpoint, rules } = ask;
  const flags = (endpoint.graphql ? 4 : 0) + (endpoint.content ? 8 : 0) + (endpoint.primary ? 16 : 0);
  at = out.writeUInt8(OPERATIONS[kind] + flags, at);
  at = out.writeUInt8(endpoint.categoryIndex, at);
  at = out.writeUInt32LE(Math.min(ask.quota, NO_LIMIT), at);
  at = out.writeUInt32LE(rules.categories[endpoint.category].windowSeconds, at);
  at = out.writeUIntLE(endpoint.hash * KINDS, at, 6);
  at = out.writeUInt32LE(ask.points, at);
  at = out.writeUInt32LE(Math.min(endpoint.contentPerMinute, NO_LIMIT), at);
  at = out.writeUInt32LE(Math.min(endpoint.contentPerHour, NO_LIMIT), at);
  return out.writeUInt32LE(amount, at);
}

/** The script's answer: its time, then a verdict for each decision. */
export function decodeVerdicts(reply: Buffer): { nowMs: number; verdicts: Verdict[] } {
  const nowMs = reply.readDoubleLE(0);
  const verdicts: Verdict[] = [];
  for (let at = 8; at < reply.length; at += VERDICT_BYTES) {
    verdicts.push({
      refusedBy: reply[at]! - 1,
      shadowed: reply[at + 1]!,
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
  { name: 'core', used: 0, end: 4, scale: 1 },
  { name: 'content-minute', used: 8, end: 12, scale: 1 },
  { name: 'content-hour', used: 16, end: 20, scale: 1 },
  { name: 'cpu', used: 32, end: 28, scale: 1000 },
  { name: 'graphql-cpu', used: 36, end: 28, scale: 1000 },
] as const;

const FIRST_LEASE = 40;
const LEASE_BYTES = 10;
const FIRST_WINDOW = 50;
const WINDOW_BYTES = 14;
const FIXED_BYTES = 64;

/** A caller's value as the script wrote it. */
export function decodeState(key: string, value: Buffer | null, nowMs: number): CallerState {
  const now = Math.floor(nowMs / 1000);
  if (value === null || value.length < FIXED_BYTES) return { key, underWay: 0, windows: [] };
  const windows: WindowState[] = [];
  for (const { name, used, end, scale } of FIXED_WINDOWS) {
    const reset = value.readUInt32LE(end);
    if (reset > now) windows.push({ name, used: value.readUInt32LE(used) / scale, reset });
  }
  const moreLeases = value.readUInt16LE(24);
  const moreWindows = value.readUInt16LE(26);
  const firstMoreWindow = FIXED_BYTES + moreLeases * LEASE_BYTES;
  for (const at of [FIRST_WINDOW, ...places(firstMoreWindow, moreWindows, WINDOW_BYTES)]) {
    const reset = value.readUInt32LE(at + 10);
    if (reset > now)
      windows.push({ name: windowName(value.readUIntLE(at, 6)), used: value.readUInt32LE(at + 6), reset });
  }
  let underWay = 0;
  for (const at of [FIRST_LEASE, ...places(FIXED_BYTES, moreLeases, LEASE_BYTES)]) {
    if (value.readUInt32LE(at + 6) > now) underWay += value.readUInt16LE(at);
  }
  return { key, underWay, windows };
}

function places(start: number, count: number, bytes: number): number[] {
  return Array.from({ length: count }, (_, n) => start + n * bytes);
}

const nameByHash = new Map<number, string>();

function windowName(id: number): string {
  if (id < CATEGORIES.length) return CATEGORIES[id] ?? '';
  const names = endpointNames();
  for (let n = nameByHash.size; n < names.length; n += 1) nameByHash.set(hashOf(names[n]!), names[n]!);
  const kind = ['points', 'content-minute', 'content-hour'][id % KINDS] ?? 'window';
  const hash = Math.floor(id / KINDS);
  // Another gateway may have routes that this one has not.
  return `${kind} ${nameByHash.get(hash) ?? `endpoint ${hash.toString(16)}`}`;
}
