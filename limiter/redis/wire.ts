import {
  CORE,
  CPU,
  type Endpoints,
  FIRST_ENDPOINT_ID,
  GRAPHQL_CPU,
  HOUR,
  MINUTE,
  scaleOf,
  WINDOW_KINDS,
} from '../endpoints.ts';
import type { CallerState, Endpoint, LimitRules, Verdict, WindowState } from '../types.ts';
import { contentLimits, limitsOf, type WindowLimit } from '../window-limits.ts';

const NO_LIMIT = 0xff_ff_ff_ff;

/** Kinds of limits in the script. */
const [QUOTA, POINTS, TIME, CONTENT, OTHER_TIME] = [0, 1, 2, 3, 4];

/** An operation of the script on one caller. */
export type Operation = Readonly<{
  kind: 'decide' | 'change' | 'end' | 'renew' | 'forget';
  /** Change of the requests under way; for `renew` their number. */
  count: number;
  /** Spends of the quota and of content, points, and microseconds of CPU time. */
  quota?: number;
  points?: number;
  micros?: number;
  content?: number;
  /** These change what was spent at this time, in epoch milliseconds. Default: they are spent now. */
  spentMs?: number;
}>;
const OPERATIONS = ['decide', 'change', 'end', 'renew', 'forget'] as const satisfies Operation['kind'][];

/** The process that calls. */
export type Sender = Readonly<{
  /** 0: the server's clock. */
  nowMs: number;
  gateway: number;
  leaseSeconds: number;
  /** The server's time when it last said something, or before its last long silence; 0: unknown. */
  heardSeconds: number;
}>;

/** The limits of a decision that no window has. */
export type Bounds = Readonly<{ quota: number; concurrent: number; shadow: number }>;
const NO_BOUNDS: Bounds = { quota: 0, concurrent: 0, shadow: 0 };

/** The script's argument: the operation, and the limits that it concerns. */
export function encodeOperation(operation: Operation, sender: Sender, limits: string, bounds = NO_BOUNDS): string {
  const { kind, count, quota = 0, points = 0, micros = 0, content = 0, spentMs = 0 } = operation;
  const { nowMs, gateway, leaseSeconds, heardSeconds } = sender;
  const whose = `${OPERATIONS.indexOf(kind)},${nowMs},${gateway},${leaseSeconds},${heardSeconds},${count}`;
  const spends = `${quota},${points},${micros},${content},${spentMs}`;
  const { concurrent, shadow } = bounds;
  return `[${whose},${spends},${Math.min(bounds.quota, NO_LIMIT)},${Math.min(concurrent, NO_LIMIT)},${shadow}${limits}]`;
}

/** The limits of an endpoint, and those that the end of a request concerns, as the script reads them. */
export type EncodedLimits = Readonly<{ all: string; time: string }>;

export function encodeLimits(endpoint: Endpoint, rules: LimitRules, endpoints: Endpoints): EncodedLimits {
  // A hash leaves room for the kind of a window.
  const own = endpoint.hash * WINDOW_KINDS.length;
  const furtherId = (seconds: number): number => endpoints.furtherWindow(endpoint.category, seconds).shared;
  const { quota, further, points, cpu, graphqlCpu, content } = limitsOf(endpoint, rules, { own, further: furtherId });
  const primary = [quota, ...further].map((limit) => encodeLimit(QUOTA, limit)).join('');
  const time = encodeLimit(TIME, cpu) + encodeLimit(endpoint.graphql ? TIME : OTHER_TIME, graphqlCpu);
  const created = content.map((limit) => encodeLimit(CONTENT, limit));
  return { all: `${primary}${encodeLimit(POINTS, points)}${time}${created.join('')}`, time };
}

/** The limits of content that was created elsewhere. */
export function encodeContentLimits(rules: LimitRules): string {
  return contentLimits(rules)
    .map((limit) => encodeLimit(CONTENT, limit))
    .join('');
}

function encodeLimit(kind: number, { bit, id, seconds, step, limit }: WindowLimit): string {
  return `,${kind},${31 - Math.clz32(bit)},${id},${seconds},${step},${Math.min(limit, NO_LIMIT)}`;
}

/** The script's answer: the numbers of a verdict, or only the time (and -1 for the refusing limit). */
export function decodeVerdict(reply: Reply): Verdict {
  const [refusedBy = -1, until = 0, shadowed = 0, window = 0, used = 0, reset = 0, nowMs = 0] =
    typeof reply === 'number' ? [-1, 0, 0, 0, 0, 0, reply] : reply;
  return { refusedBy, until, shadowed, window, used, reset, nowMs, ticket: 0 };
}

/** The numbers of a verdict in their order, the time last; only the time where nothing was asked. */
export type Reply = number | readonly number[];

/** Stands in place of the refusing limit: the caller's value is foreign. */
export const FOREIGN = 254;

/** Places of the windows that each value has. */
const SHARED_WINDOWS = [
  { id: CORE, end: 1, used: 31 },
  { id: MINUTE, end: 5, used: 35 },
  { id: HOUR, end: 9, used: 39 },
  { id: CPU, end: 61, used: 53 },
  { id: GRAPHQL_CPU, end: 61, used: 57 },
] as const;

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
  const addWindow = (id: number, used: number, reset: number): void => {
    if (reset > now) windows.push({ name: windowName(id, endpoints), used: used / scaleOf(id), reset });
  };
  for (const { id, used, end } of SHARED_WINDOWS) addWindow(id, value.readUInt32LE(used), value.readUInt32LE(end));
  const firstMoreWindow = FIXED_BYTES + value.readUInt16LE(MORE_LEASES) * LEASE_BYTES;
  const moreWindows = places(firstMoreWindow, value.readUInt16LE(MORE_WINDOWS), WINDOW_BYTES);
  for (const at of [FIRST_WINDOW, ...moreWindows.map((id) => ({ id, used: id + 6, end: id + 10 }))]) {
    addWindow(value.readUIntLE(at.id, 6), value.readUInt32LE(at.used), value.readUInt32LE(at.end));
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
  if (id < FIRST_ENDPOINT_ID) return endpoints.windowName(id);
  const kind = WINDOW_KINDS[id % WINDOW_KINDS.length] ?? 'window';
  const hash = Math.floor(id / WINDOW_KINDS.length);
  return `${kind} ${endpoints.nameOf(hash) ?? `endpoint ${hash.toString(16)}`}`;
}
