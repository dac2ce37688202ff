import { createHash } from 'node:crypto';

import { CATEGORIES, type Endpoint, type EndpointDefinition } from './types.ts';

/** Ids below this belong to a caller's windows that no endpoint owns (the categories). */
const FIRST_ID = 16;
const IDS_PER_ENDPOINT = 4;

/** Names come from route tables. One that grows without end is made of raw paths, and would grow memory with it. */
const MOST_ENDPOINTS = 20_000;

/** The names of endpoints and their numbers. A name keeps its number, so that counts survive a change of rules. */
export class Endpoints {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];

  define(definition: EndpointDefinition): Endpoint {
    const graphql = definition.api === 'graphql';
    const category = definition.category ?? (graphql ? 'graphql' : 'core');
    const points = definition.points ?? (/^(GET|HEAD|OPTIONS)\b/.test(definition.name) ? 1 : 5);
    const own = typeof definition.content === 'object' ? definition.content : {};
    const endpoint: Endpoint = {
      name: definition.name,
      id: FIRST_ID + this.#numberOf(definition.name) * IDS_PER_ENDPOINT,
      hash: hashOf(definition.name),
      category,
      categoryIndex: CATEGORIES.indexOf(category),
      graphql,
      points,
      primary: definition.primary ?? true,
      content: definition.content !== undefined && definition.content !== false,
      contentPerMinute: own.perMinute ?? Infinity,
      contentPerHour: own.perHour ?? Infinity,
    };
    check(endpoint);
    return Object.freeze(endpoint);
  }

  #numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    if (this.#names.length >= MOST_ENDPOINTS) {
      throw new RangeError(`more than ${MOST_ENDPOINTS} endpoints: define one per route template, not one per path`);
    }
    const number = this.#names.length;
    this.#names.push(name);
    this.#numbers.set(name, number);
    return number;
  }
}

/** The name in a shared store: 46 bits, so that with the window's kind it stays exact in a double. */
export function hashOf(name: string): number {
  return createHash('sha256').update(name).digest().readUIntBE(0, 6) % 2 ** 46;
}

function check(endpoint: Endpoint): void {
  const { name, points, categoryIndex, category, contentPerMinute, contentPerHour } = endpoint;
  if (name === '') throw new RangeError('an endpoint needs a name');
  if (categoryIndex < 0) throw new RangeError(`${name}: there is no category ${category}`);
  if (!Number.isInteger(points) || points < 0 || points > 1_000_000) {
    throw new RangeError(`${name}: points must be a whole number from 0 to 1000000, not ${points}`);
  }
  for (const limit of [contentPerMinute, contentPerHour]) {
    if (limit !== Infinity && (!Number.isInteger(limit) || limit < 0)) {
      throw new RangeError(`${name}: a limit of content must be a whole number, not ${limit}`);
    }
  }
}
