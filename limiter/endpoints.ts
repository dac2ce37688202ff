import { createHash } from 'node:crypto';

import {
  CATEGORIES,
  type Category,
  type Endpoint,
  type EndpointDefinition,
  type LimitName,
  type LimitRules,
  LIMITS,
} from './types.ts';

/** Ids of the windows that all endpoints share, after those of the categories. */
export const CORE = CATEGORIES.indexOf('core');
export const MINUTE = CATEGORIES.length;
export const HOUR = MINUTE + 1;
export const CPU = MINUTE + 2;
export const GRAPHQL_CPU = MINUTE + 3;
const SHARED_WINDOWS: readonly string[] = [...CATEGORIES, 'content-minute', 'content-hour', 'cpu', 'graphql-cpu'];

/** Lower ids are windows that no endpoint owns. */
export const FIRST_ENDPOINT_ID = 16;

/** Names come from route tables. More than this means that raw paths are used as names, which would fill the memory. */
const MAX_ENDPOINTS = 20_000;

const IN_CORE = { category: 'core', categoryIndex: CORE } as const;

/** The windows of an endpoint: `id`, `id + 1`, `id + 2`. A further window of a category is the last kind of a name of its own. */
export const WINDOW_KINDS = ['points', 'content-minute', 'content-hour', 'primary'] as const;
export const PRIMARY_KIND = WINDOW_KINDS.indexOf('primary');

/** The name of a category's further window in `WindowState`. */
export function furtherWindowName(category: Category, windowSeconds: number): string {
  return `primary ${category} ${windowSeconds} s`;
}

/**
 * The endpoints of a store by their numbers: a store that reads its counts back knows names before routes are defined.
 * A name keeps its number for as long as the store lives, so that counts survive a change of rules.
 */
export class Endpoints {
  readonly #ids = new Map<string, number>();
  readonly #names: string[] = [];
  /** Includes each name that was looked up by its hash, and all names before it. */
  readonly #namesByHash = new Map<number, string>();

  /** Fills in the defaults of a route and checks it. Throws a `RangeError` for wrong values, and for too many names. */
  define(definition: EndpointDefinition): Endpoint {
    const endpoint = withDefaults(definition);
    check(endpoint);
    const inCategory = { ...endpoint, of: this, id: this.#idOf(definition.name) };
    const inCore = Object.freeze({ ...inCategory, ...IN_CORE, inCore: undefined });
    return endpoint.category === 'core' ? inCore : Object.freeze({ ...inCategory, inCore });
  }

  /** The name of a caller's window in `WindowState`. */
  windowName(windowId: number): string {
    if (windowId < FIRST_ENDPOINT_ID) return SHARED_WINDOWS[windowId] ?? `window ${windowId}`;
    const kind = WINDOW_KINDS[windowId % WINDOW_KINDS.length] ?? 'points';
    const name = this.#names[Math.floor((windowId - FIRST_ENDPOINT_ID) / WINDOW_KINDS.length)] ?? '?';
    return `${kind} ${name}`;
  }

  /** The reverse of `windowName`; undefined for a name of another version of this program, and where there are too many. */
  windowId(windowName: string): number | undefined {
    const shared = SHARED_WINDOWS.indexOf(windowName);
    if (shared >= 0) return shared;
    const space = windowName.indexOf(' ');
    const kind = WINDOW_KINDS.findIndex((known) => known === windowName.slice(0, space));
    const name = windowName.slice(space + 1);
    const isFull = this.#names.length >= MAX_ENDPOINTS && !this.#ids.has(name);
    return kind < 0 || isFull ? undefined : this.#idOf(name) + kind;
  }

  /** The name with this hash, for a store that keeps no others. */
  nameOf(hash: number): string | undefined {
    for (let n = this.#namesByHash.size; n < this.#names.length; n += 1) {
      this.#namesByHash.set(hashOf(this.#names[n]!), this.#names[n]!);
    }
    return this.#namesByHash.get(hash);
  }

  /** The id of a category's further window: here, and in a shared store. */
  furtherWindow(category: Category, windowSeconds: number): Readonly<{ id: number; shared: number }> {
    const name = furtherWindowName(category, windowSeconds).slice('primary '.length);
    return { id: this.#idOf(name) + PRIMARY_KIND, shared: hashOf(name) * WINDOW_KINDS.length + PRIMARY_KIND };
  }

  #idOf(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    if (this.#names.length >= MAX_ENDPOINTS) {
      throw new RangeError(`more than ${MAX_ENDPOINTS} endpoints: define one per route template, not one per path`);
    }
    const id = FIRST_ENDPOINT_ID + this.#names.length * WINDOW_KINDS.length;
    this.#names.push(name);
    this.#ids.set(name, id);
    return id;
  }
}

/** The endpoint whose windows a request spends. */
export function countedEndpoint(endpoint: Endpoint, { categories }: LimitRules): Endpoint {
  const { inCore, category } = endpoint;
  return inCore !== undefined && categories[category].limit === 'off' ? inCore : endpoint;
}

/** Divides the count of a window where it is shown: CPU time is counted in microseconds and shown in milliseconds. */
export function scaleOf(windowId: number): number {
  return windowId === CPU || windowId === GRAPHQL_CPU ? 1000 : 1;
}

/** A set of limits as bits, in the order of `LIMITS`. */
export function bitsOf(limits: readonly LimitName[]): number {
  return limits.reduce((bits, name) => bits | (1 << LIMITS.indexOf(name)), 0);
}

/** The reverse of `bitsOf`. */
export function limitsIn(bits: number): LimitName[] {
  return LIMITS.filter((_, index) => (bits & (1 << index)) !== 0);
}

/** The name in a shared store: 46 bits, so that with the window's kind it stays exact in a double. */
export function hashOf(name: string): number {
  return createHash('sha256').update(name).digest().readUIntBE(0, 6) % 2 ** 46;
}

function withDefaults(definition: EndpointDefinition): Omit<Endpoint, 'id' | 'of' | 'inCore'> {
  const graphql = definition.api === 'graphql';
  const category = definition.category ?? (graphql ? 'graphql' : 'core');
  const own = typeof definition.content === 'object' ? definition.content : {};
  return {
    name: definition.name,
    hash: hashOf(definition.name),
    category,
    categoryIndex: CATEGORIES.indexOf(category),
    graphql,
    points: definition.points ?? (graphql || /^(GET|HEAD|OPTIONS)\b/.test(definition.name) ? 1 : 5),
    primary: definition.primary ?? true,
    content: definition.content !== undefined && definition.content !== false,
    contentPerMinute: own.perMinute ?? Infinity,
    contentPerHour: own.perHour ?? Infinity,
    shadow: bitsOf(definition.shadow ?? []),
  };
}

function check(endpoint: Omit<Endpoint, 'id' | 'of' | 'inCore'>): void {
  const { name, points, categoryIndex, category, contentPerMinute, contentPerHour } = endpoint;
  if (name === '') throw new RangeError('an endpoint needs a name');
  if (categoryIndex < 0) throw new RangeError(`${name}: there is no category ${category}`);
  if (!Number.isInteger(points) || points < 0 || points > 1_000_000) {
    throw new RangeError(`${name}: points must be a whole number from 0 to 1000000, not ${points}`);
  }
  for (const limit of [contentPerMinute, contentPerHour]) {
    if (limit !== Infinity && (!Number.isInteger(limit) || limit < 0 || limit > 1_000_000_000)) {
      throw new RangeError(`${name}: a limit of content must be a whole number, not ${limit}`);
    }
  }
}
