import type { IncomingHttpHeaders } from 'node:http';

import type { Config } from '../../config/schema.ts';
import type { Policy } from '../../policy.ts';
import type { Exchange } from '../exchange.ts';

export type CorsPolicy = Config['cors'];

const MAX_ORIGINS = 1000;
const MAX_ORIGIN_LENGTH = 300;
const RATE_HEADERS = [
  ...['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-used', 'x-ratelimit-reset', 'x-ratelimit-resource'],
  ...['ratelimit', 'ratelimit-policy', 'retry-after'],
].join(', ');

/** The origins whose pages the upstream lets read its answers, as its answers have said. */
export class LearnedOrigins {
  /** The one that was seen last comes last. */
  readonly #headers = new Map<string, readonly string[]>();
  #forAll: readonly string[] | undefined;

  learn(origin: string, answered: IncomingHttpHeaders): void {
    const allowed = answered['access-control-allow-origin'];
    if (allowed === '*') this.#forAll = ['access-control-allow-origin', '*'];
    if (allowed !== origin || origin.length > MAX_ORIGIN_LENGTH) return;
    const credentials = answered['access-control-allow-credentials'];
    const headers = ['access-control-allow-origin', origin, 'vary', 'Origin'];
    if (credentials === 'true') headers.push('access-control-allow-credentials', 'true');
    this.#headers.delete(origin);
    this.#headers.set(origin, headers);
    if (this.#headers.size > MAX_ORIGINS) this.#headers.delete(this.#headers.keys().next().value!);
  }

  find(origin: string): readonly string[] | undefined {
    return this.#headers.get(origin) ?? this.#forAll;
  }
}

/** Appends what lets a page read an answer of the gateway itself, as it may read those of the upstream. */
export function pushCorsHeaders(headers: string[], { req, gateway, policy }: Exchange): void {
  const { origin } = req.headers;
  if (policy.config.cors === 'own') return pushOwn(headers);
  if (policy.config.cors === 'off' || origin === undefined) return;
  const learned = gateway.origins.find(origin);
  if (learned === undefined) return;
  for (const word of learned) headers.push(word);
  headers.push('access-control-expose-headers', RATE_HEADERS);
}

/** Appends to the headers of an upstream's answer: a page that may read it may read the limits, too. */
export function exposeLimits(
  headers: string[],
  answered: IncomingHttpHeaders,
  { req, gateway, policy }: Pick<Exchange, 'req' | 'gateway' | 'policy'>,
): void {
  const { origin } = req.headers;
  if (policy.config.cors === 'own') return pushOwn(headers);
  if (policy.config.cors === 'off' || origin === undefined) return;
  if (answered['access-control-allow-origin'] === undefined) return;
  gateway.origins.learn(origin, answered);
  headers.push('access-control-expose-headers', RATE_HEADERS);
}

/** Whether the gateway says it instead of the upstream. */
export function isOwnCors(name: string, { config }: Policy): boolean {
  return config.cors === 'own' && name.startsWith('access-control-');
}

function pushOwn(headers: string[]): void {
  headers.push('access-control-allow-origin', '*', 'access-control-expose-headers', '*');
}
