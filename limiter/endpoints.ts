import { createHash } from 'node:crypto';

import { CATEGORIES, type Endpoint, type EndpointDefinition, type LimitName, LIMITS } from './types.ts';

/** Ids below this belong to a caller's windows that no endpoint owns (the categories). */
export const FIRST_ENDPOINT_ID = 16;
const IDS_PER_ENDPOINT = 4;

/** Names come from route tables. One that grows without end is made of raw paths, and would grow memory with it. */
const MOST_ENDPOINTS = 20_000;

// One numbering for the whole process: a store that reads its counts back knows names before routes are defined.
const idByName = new Map<string, number>();
const names: string[] = [];

/** Fills in the defaults of a route and checks it. */
export function defineEndpoint(definition: EndpointDefinition): Endpoint {
  const graphql = definition.api === 'graphql';
  const category = definition.category ?? (graphql ? 'graphql' : 'core');
  const own = typeof definition.content === 'object' ? definition.content : {};
  const endpoint: Omit<Endpoint, 'id'> = {
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
  check(endpoint);
  return Object.freeze({ ...endpoint, id: endpointId(definition.name) });
}

/** A set of limits as bits, in the order of `LIMITS`. */
export function bitsOf(limits: readonly LimitName[]): number {
  return limits.reduce((bits, name) => bits | (1 << LIMITS.indexOf(name)), 0);
}

/** The reverse of `bitsOf`. */
export function limitsIn(bits: number): LimitName[] {
  return LIMITS.filter((_, index) => (bits & (1 << index)) !== 0);
}

/** The number of a name; the same for as long as the process lives, so that counts survive a change of rules. */
export function endpointId(name: string): number {
  const known = idByName.get(name);
  if (known !== undefined) return known;
  if (names.length >= MOST_ENDPOINTS) {
    throw new RangeError(`more than ${MOST_ENDPOINTS} endpoints: define one per route template, not one per path`);
  }
  const id = FIRST_ENDPOINT_ID + names.length * IDS_PER_ENDPOINT;
  names.push(name);
  idByName.set(name, id);
  return id;
}

/** What an endpoint's windows count: `id`, `id + 1`, `id + 2`. */
const WINDOW_KINDS = ['points', 'content-minute', 'content-hour'] as const;

/** How a window of a caller is called in `WindowState`. */
export function windowName(windowId: number): string {
  if (windowId < FIRST_ENDPOINT_ID) return CATEGORIES[windowId] ?? `window ${windowId}`;
  const kind = WINDOW_KINDS[windowId % IDS_PER_ENDPOINT] ?? 'points';
  const name = names[Math.floor((windowId - FIRST_ENDPOINT_ID) / IDS_PER_ENDPOINT)] ?? '?';
  return `${kind} ${name}`;
}

/** The reverse of `windowName`; undefined for a name of another version of this program. */
export function windowIdOf(name: string): number | undefined {
  const category = CATEGORIES.findIndex((known) => known === name);
  if (category >= 0) return category;
  const space = name.indexOf(' ');
  const kind = WINDOW_KINDS.findIndex((known) => known === name.slice(0, space));
  return kind < 0 || idByNameIsFull(name.slice(space + 1)) ? undefined : endpointId(name.slice(space + 1)) + kind;
}

function idByNameIsFull(name: string): boolean {
  return names.length >= MOST_ENDPOINTS && !idByName.has(name);
}

/** The names known so far, for a store that keeps hashes. */
export function endpointNames(): readonly string[] {
  return names;
}

/** The name in a shared store: 46 bits, so that with the window's kind it stays exact in a double. */
export function hashOf(name: string): number {
  return createHash('sha256').update(name).digest().readUIntBE(0, 6) % 2 ** 46;
}

function check(endpoint: Omit<Endpoint, 'id'>): void {
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
