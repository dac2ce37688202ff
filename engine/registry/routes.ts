import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { parseFilters, type Filters } from '../http/values/filters.ts';
import { EngineError } from '../lib/errors.ts';
import { credentialsOf, parseRegistryAuth } from './auth/credentials.ts';
import { login } from './auth/login.ts';
import { searchIndex } from './search.ts';
import { refusedLogin } from './versions.ts';

const text = (description: string) => Type.Optional(Type.Union([Type.String(), Type.Null()], { description }));

const LoginRequest = Type.Object({
  username: text('Name at the registry'),
  password: text('Its password'),
  auth: text('Both, with a colon between, in base64'),
  serveraddress: text('Host or URL of the registry; docker.io without'),
  identitytoken: text('Replaces the password'),
  registrytoken: text('Sent to the registry unchanged'),
});

const LoginAnswer = Type.Object({
  Status: Type.String(),
  IdentityToken: Type.String({ description: 'Replaces the password; empty if the registry issues none' }),
});

const SearchQuery = Type.Object({
  term: Type.Optional(Type.String({ description: 'What to look for, with or without the host of an index before it' })),
  limit: Type.Optional(Type.String({ description: 'How many results at most, 25 by default' })),
  filters: Type.Optional(Type.String({ description: 'JSON map: stars, is-official, is-automated' })),
});

const SearchResult = Type.Object({
  star_count: Type.Integer(),
  is_official: Type.Boolean(),
  name: Type.String(),
  is_automated: Type.Boolean(),
  description: Type.String(),
});

const DEFAULT_LIMIT = '25';

export const registryRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/images/search', {
      schema: { querystring: SearchQuery, response: { 200: Type.Array(SearchResult) } },
      handler: async ({ query, headers }, reply) => {
        const filters = parseFilters(query.filters, ['is-automated', 'is-official', 'stars']);
        const wanted = {
          isAutomated: exactBoolean(filters, 'is-automated'),
          isOfficial: exactBoolean(filters, 'is-official'),
          stars: [...(filters.get('stars') ?? [])].reduce((most, stars) => Math.max(most, starsOf(stars)), 0),
        };
        const hits = await searchIndex(engine, {
          term: query.term ?? '',
          limit: limitOf(query.limit || DEFAULT_LIMIT),
          wanted,
          credentials: parseRegistryAuth(headers['x-registry-auth']),
          signal: clientGone(reply.raw),
        });
        return hits.map(({ name, description, stars, isOfficial, isAutomated }) => ({
          star_count: stars,
          is_official: isOfficial,
          name,
          is_automated: isAutomated,
          description,
        }));
      },
    });

    http.post('/auth', {
      schema: { body: LoginRequest, response: { 200: LoginAnswer } },
      config: { errors: refusedLogin },
      handler: async ({ body }, reply) => {
        const signal = clientGone(reply.raw);
        const token = await login(engine, body.serveraddress ?? '', credentialsOf(body), signal);
        return { Status: 'Login Succeeded', IdentityToken: token };
      },
    });
  };

function limitOf(text: string): number {
  if (/^[+-]?\d+$/.test(text)) return Number(text);
  throw new EngineError('invalid', `query parameter limit: ${JSON.stringify(text)} is not a whole number`);
}

function starsOf(text: string): number {
  if (/^[+-]?\d+$/.test(text)) return Number(text);
  throw new EngineError('invalid', `Invalid filter 'stars=${text}'`);
}

/** Only these words: not `1`, and not both. */
function exactBoolean(filters: Filters, key: string): boolean | undefined {
  const values = [...(filters.get(key) ?? [])];
  if (values.length === 0) return undefined;
  const [value] = values;
  if (values.length > 1 || (value !== 'true' && value !== 'false')) {
    throw new EngineError('invalid', `Invalid filter '${key}=[${values.join(' ')}]'`);
  }
  return value === 'true';
}
