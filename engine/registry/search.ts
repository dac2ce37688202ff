import { Type } from 'typebox';

import type { Config } from '../config/daemon-config.ts';
import type { Engine } from '../engine.ts';
import { parseBoundedJson } from '../lib/bounded-json.ts';
import { EngineError } from '../lib/errors.ts';
import { lazyCheck } from '../lib/lazy-check.ts';
import type { Credentials } from './auth/credentials.ts';
import { certificatesOf } from './connection/certificates.ts';
import { DEFAULT_REGISTRY, endpointsOf, type Endpoint } from './connection/endpoints.ts';
import { readBody } from './connection/read-body.ts';
import { Transport } from './connection/transport.ts';
import { RegistryError, Unreachable } from './errors.ts';

type Needs = Pick<Engine, 'config'>;

/** A repository in the answer of an index; all but the name may be missing. */
const Answer = Type.Object({
  results: Type.Union([
    Type.Null(),
    Type.Array(
      Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        star_count: Type.Optional(Type.Integer()),
        is_official: Type.Optional(Type.Boolean()),
        is_automated: Type.Optional(Type.Boolean()),
      }),
    ),
  ]),
});
const answer = lazyCheck(Answer);

/** A repository that was found. */
export type Hit = { name: string; description: string; stars: number; isOfficial: boolean; isAutomated: boolean };

/** Undefined fields restrict nothing. */
type Wanted = { isOfficial: boolean | undefined; isAutomated: boolean | undefined; stars: number };

type Search = { term: string; limit: number; wanted: Wanted; credentials: Credentials; signal: AbortSignal };

const MAX_COUNT = 100;
const ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * Asks an index of version 1 for repositories, in its order: the one that the term begins with, or the one in the
 * settings. It gets a name and a password only by TLS, or where the settings call it insecure.
 */
export async function searchIndex(engine: Needs, { term, limit, wanted, credentials, signal }: Search): Promise<Hit[]> {
  if (limit < 1 || limit > MAX_COUNT) {
    throw new EngineError('invalid', `Limit ${limit} is outside the range of [1, ${MAX_COUNT}]`);
  }
  const { endpoints, words } = await placesOf(engine.config, term);
  let failure: unknown;
  for (const endpoint of endpoints) {
    try {
      const hits = await ask(engine.config, endpoint, { words, limit, credentials, signal });
      return hits.filter((hit) => fits(hit, wanted));
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** A term such as `registry.example.com/nginx` has its index before the first slash. */
async function placesOf(config: Config, term: string): Promise<{ endpoints: Endpoint[]; words: string }> {
  if (term.includes('://')) {
    throw new EngineError('failed', 'Invalid repository name (ex: "registry.domain.tld/myrepos")');
  }
  const slash = term.indexOf('/');
  const host = term.slice(0, Math.max(0, slash));
  const isHost = /[.:]/.test(host) || host === 'localhost';
  const isDefault = !isHost || host === DEFAULT_REGISTRY || host === `index.${DEFAULT_REGISTRY}`;
  const rest = isHost ? term.slice(slash + 1) : term;
  if (!isDefault) return { endpoints: await endpointsOf(host, config, false), words: rest };
  const url = new URL(config.searchIndex);
  const isVerified = url.protocol === 'https:' && (await endpointsOf(url.host, config, false))[0]!.isVerified;
  return { endpoints: [{ url, isVerified, isMirror: false }], words: rest.replace(/^library\//, '') };
}

type Asked = { words: string; limit: number; credentials: Credentials; signal: AbortSignal };

async function ask(
  config: Config,
  { url, isVerified }: Endpoint,
  { words, limit, credentials, signal }: Asked,
): Promise<Hit[]> {
  using transport = new Transport(url.host, certificatesOf(config.registryCertificates, url.host), isVerified);
  const address = new URL('/v1/search', url);
  address.searchParams.set('q', words);
  address.searchParams.set('n', String(limit));
  const { username, password } = credentials;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const headers = { 'x-docker-token': 'true', ...(username !== '' && { authorization }) };
  const found = await transport.send(address, { method: 'GET', headers, signal });
  const body = await readBody(found, ANSWER_BYTES, 'the answer of the search');
  if (found.statusCode !== 200) throw new RegistryError(`Unexpected status code ${found.statusCode}`);
  return hitsIn(body);
}

function hitsIn(body: Buffer): Hit[] {
  const json = parseAnswer(body);
  if (!answer.Check(json)) throw new RegistryError('the answer of the index is not a list of results');
  return (json.results ?? []).map((result) => ({
    name: result.name,
    description: result.description ?? '',
    stars: result.star_count ?? 0,
    isOfficial: result.is_official ?? false,
    isAutomated: result.is_automated ?? false,
  }));
}

function parseAnswer(body: Buffer): unknown {
  try {
    return parseBoundedJson(body.toString());
  } catch {
    return undefined; // refused by the check
  }
}

function fits(hit: Hit, { isOfficial, isAutomated, stars }: Wanted): boolean {
  return (
    hit.stars >= stars &&
    (isOfficial === undefined || hit.isOfficial === isOfficial) &&
    (isAutomated === undefined || hit.isAutomated === isAutomated)
  );
}
