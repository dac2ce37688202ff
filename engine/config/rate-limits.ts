import { Type, type Static } from 'typebox';
import Schema from 'typebox/schema';

import { EngineError } from '../lib/errors.ts';
import { readJsonFile } from './settings-files.ts';

const closed = { additionalProperties: false } as const;
const count = (minimum: number, maximum = 1_000_000_000) => Type.Optional(Type.Integer({ minimum, maximum }));
const windowSeconds = count(1, 366 * 24 * 3600);

/** The keys of the gateway's configuration file that apply to the engine's API. */
const File = Type.Object(
  {
    limits: Type.Optional(Type.Object({ anonymous: count(0), user: count(0) }, closed)),
    categories: Type.Optional(Type.Object({ core: Type.Optional(Type.Object({ windowSeconds }, closed)) }, closed)),
    secondary: Type.Optional(
      Type.Object(
        {
          concurrent: Type.Optional(Type.Object({ limit: count(0, 60_000) }, closed)),
          restPoints: Type.Optional(Type.Object({ limit: count(0), windowSeconds }, closed)),
        },
        closed,
      ),
    ),
    identities: Type.Optional(
      Type.Object(
        {
          tokens: Type.Optional(
            Type.Array(
              Type.Object(
                { sha256: Type.String({ pattern: '^[0-9a-fA-F]{64}$' }), user: Type.String({ minLength: 1 }) },
                closed,
              ),
            ),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** How many requests each client over TCP may send. */
export type RateLimits = Readonly<{
  anonymous: number;
  user: number;
  windowSeconds: number;
  concurrent: number;
  points: Readonly<{ limit: number; windowSeconds: number }>;
  /** Hashes only, so the file holds no secret. */
  tokens: readonly Readonly<{ sha256: string; user: string }>[];
}>;

/** Reads the file of `--api-rate-limit`; the defaults are the specification's. Throws `invalid`. */
export function readRateLimits(path: string): RateLimits {
  const { limits = {}, categories = {}, secondary = {}, identities = {} } = readLimitsFile(path);
  const tokens = identities.tokens ?? [];
  const seen = new Set<string>();
  for (const { sha256 } of tokens) {
    if (seen.has(sha256.toLowerCase())) throw new EngineError('invalid', `${path}: duplicate token: ${sha256}`);
    seen.add(sha256.toLowerCase());
  }
  return {
    anonymous: limits.anonymous ?? 60,
    user: limits.user ?? 5000,
    windowSeconds: categories.core?.windowSeconds ?? 3600,
    concurrent: secondary.concurrent?.limit ?? 100,
    points: {
      limit: secondary.restPoints?.limit ?? 900,
      windowSeconds: secondary.restPoints?.windowSeconds ?? 60,
    },
    tokens,
  };
}

function readLimitsFile(path: string): Static<typeof File> {
  const value = readJsonFile(path);
  const [fits, errors] = Schema.Compile(File).Errors(value);
  if (fits) return value as Static<typeof File>;
  const problems = errors.map(({ instancePath, keyword, message }) => {
    const problem = keyword === 'pattern' ? 'must be 64 hexadecimal digits' : message;
    return `${instancePath.slice(1).replaceAll('/', '.') || 'the file'} ${problem}`;
  });
  throw new EngineError('invalid', `${path}: ${problems.join('; ')}`);
}
