import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';

import { callerFrom, type CallerFacts, type Organization, type PrimaryLimits } from '@gantry/limiter/primary.ts';
import type { Caller } from '@gantry/limiter/types.ts';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Pool } from 'undici';

import type { IntrospectionSettings } from '../config/settings/identities.ts';
import { readWhole } from '../lib/read-whole.ts';
import { type Reading, readingsOf, type Shown } from './credential-places.ts';
import { NoTurn, type Pace, type TurnLimits, Turns } from './turns.ts';

/** The source did not answer, or not in a form that can be understood. */
export class IntrospectionFailed extends Error {
  override readonly name = 'IntrospectionFailed';
}

type Cached = Readonly<{ found: Caller | 'unknown'; untilMs: number }>;

/** Bytes that are read of an answer. */
const MAX_ANSWER_BYTES = 65_536;
/** Known credentials, and as many unknown ones: a few megabytes. */
const MAX_CACHE_ENTRIES = 10_000;
/** A token that was made just now must soon be known. */
const MAX_UNKNOWN_SECONDS = 10;
/** A forge answers such questions in milliseconds: these keep it from a flood of guesses, and good tokens from waiting behind it. */
const TURN_LIMITS: TurnLimits = { concurrency: 32, perSource: 4, slowPerSecond: 10, waitMs: 10_000 };

const Org = Type.Object({ id: Type.String(), enterprise: Type.Optional(Type.Boolean()) });

/** Answer of a token introspection (RFC 7662), with the facts that decide a quota beside `active`. */
const Answer = Type.Object({
  active: Type.Boolean(),
  kind: Type.Optional(Type.Enum(['personal', 'app-user', 'oauth-user', 'installation', 'workflow'])),
  /** RFC 7662's subject; `user` goes before it. */
  sub: Type.Optional(Type.String()),
  user: Type.Optional(Type.String()),
  orgs: Type.Optional(Type.Array(Type.String())),
  app: Type.Optional(Type.Object({ owner: Type.Optional(Org), approvedBy: Type.Optional(Type.Array(Org)) })),
  installation: Type.Optional(Type.String()),
  repositories: Type.Optional(Type.Integer({ minimum: 0 })),
  users: Type.Optional(Type.Integer({ minimum: 0 })),
  hosted: Type.Optional(Type.Boolean()),
  repository: Type.Optional(Type.String()),
  enterprise: Type.Optional(Type.Boolean()),
});
type Answer = Static<typeof Answer>;

const answerSchema = Compile(Answer);

/**
 * Asks the forge whose token it is, and remembers the answer for a while by the hash of the credential's meaning.
 *
 * Requests with the same question share one answer. Few questions are asked at a time, and the addresses that they
 * come from take turns: unknown tokens must not flood the forge.
 */
export class Introspection {
  readonly #settings: IntrospectionSettings;
  readonly #primary: PrimaryLimits;
  readonly #pool: Pool;
  readonly #path: string;
  /** The gateway's own, for a token introspection (RFC 7662); without it the caller's own credential asks. */
  readonly #authorization: string | undefined;
  /** Oldest entry first. Unknown tokens have a map of their own, so that many of them evict no known one. */
  readonly #known = new Map<string, Cached>();
  readonly #unknown = new Map<string, Cached>();
  readonly #turns: Turns;
  readonly #asking = new Map<string, Promise<Caller | undefined>>();

  constructor(settings: IntrospectionSettings, primary: PrimaryLimits) {
    const url = new URL(settings.url);
    this.#settings = settings;
    this.#primary = primary;
    this.#path = url.pathname + url.search;
    const { timeoutMs } = settings;
    this.#turns = new Turns(TURN_LIMITS);
    this.#pool = new Pool(url.origin, {
      connections: TURN_LIMITS.concurrency,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    this.#authorization =
      settings.authorizationFile === undefined ? undefined : readFileSync(settings.authorizationFile, 'utf8').trim();
  }

  /** The questions about a credential. RFC 7662 knows tokens only. */
  readings(shown: Shown): Reading[] {
    const readings = readingsOf(shown).filter(({ token }) => token !== '');
    return this.#authorization === undefined ? readings : readings.slice(0, 1);
  }

  /** The cached answer: its caller or `unknown`. Undefined: the forge has to be asked. */
  find(reading: Reading): Caller | 'unknown' | undefined {
    const cached = this.#known.get(meaningOf(reading)) ?? this.#unknown.get(questionOf(reading));
    return cached !== undefined && cached.untilMs > Date.now() ? cached.found : undefined;
  }

  /** Whether it was known, and its cache entry has only expired. */
  wasKnown(reading: Reading): boolean {
    return this.#known.has(meaningOf(reading));
  }

  /** The limits of this caller by the credentials that are remembered. */
  limitsOf(key: string): number[] {
    return [...this.#known.values()].flatMap(({ found }) =>
      typeof found === 'object' && found.key === key ? [found.limit] : [],
    );
  }

  /** Asks when it is the turn of `source`; undefined: the forge does not know it. Rejects with `IntrospectionFailed`. */
  async ask(reading: Reading, source: string, pace: Pace): Promise<Caller | undefined> {
    const remembered = this.find(reading);
    if (remembered !== undefined) return remembered === 'unknown' ? undefined : remembered;
    const question = questionOf(reading);
    const before = this.#asking.get(question);
    if (before !== undefined) return await before;
    const asking = this.#askAndRemember(question, reading, source, pace);
    this.#asking.set(question, asking);
    return await asking;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #askAndRemember(question: string, reading: Reading, source: string, pace: Pace): Promise<Caller | undefined> {
    try {
      using _turn = await this.#turns.take(source, pace);
      const facts = await this.#ask(reading);
      const caller = facts === undefined ? undefined : callerFrom(facts, this.#primary);
      this.#remember(reading, caller);
      return caller;
    } catch (error) {
      if (error instanceof IntrospectionFailed) throw error;
      const message = error instanceof NoTurn ? error.message : 'the identity source does not answer';
      throw new IntrospectionFailed(message, { cause: error });
    } finally {
      this.#asking.delete(question);
    }
  }

  #remember(reading: Reading, caller: Caller | undefined): void {
    const { cacheSeconds } = this.#settings;
    const [meaning, question] = [meaningOf(reading), questionOf(reading)];
    this.#known.delete(meaning);
    this.#unknown.delete(question);
    const seconds = caller === undefined ? Math.min(cacheSeconds, MAX_UNKNOWN_SECONDS) : cacheSeconds;
    const cache: Map<string, Cached> = caller === undefined ? this.#unknown : this.#known;
    cache.set(caller === undefined ? question : meaning, {
      found: caller ?? 'unknown',
      untilMs: Date.now() + seconds * 1000,
    });
    for (const oldest of cache.keys()) {
      if (cache.size <= MAX_CACHE_ENTRIES) break;
      cache.delete(oldest);
    }
  }

  async #ask({ header, token }: Reading): Promise<CallerFacts | undefined> {
    const authorization = this.#authorization;
    const accept = { accept: 'application/json', 'user-agent': 'gantry-gateway' };
    const response = await this.#pool.request({
      path: this.#path,
      signal: AbortSignal.timeout(this.#settings.timeoutMs),
      ...(authorization === undefined
        ? { method: 'GET', headers: { ...accept, [header.name]: header.value } }
        : {
            method: 'POST',
            headers: { ...accept, authorization, 'content-type': 'application/x-www-form-urlencoded' },
            body: new URLSearchParams({ token }).toString(),
          }),
    });
    const unknown = authorization === undefined && [401, 403, 404].includes(response.statusCode);
    if (unknown || response.statusCode !== 200) {
      await response.body.dump();
      if (unknown) return undefined;
      throw new IntrospectionFailed(`the identity source answered ${response.statusCode}`);
    }
    const body = await readJson(response.body);
    return authorization === undefined ? userFacts(body) : factsOf(body);
  }
}

/** A good credential is known by its meaning, wherever it stands. */
function meaningOf({ key }: Reading): string {
  return hash('sha256', key, 'base64');
}

/** A forge may take a token in one place and not in another. */
function questionOf({ key, header: { name, value } }: Reading): string {
  return hash('sha256', `${key}\n${name}: ${value}`, 'base64');
}

async function readJson(body: Readable): Promise<unknown> {
  const text = await readWhole(body, MAX_ANSWER_BYTES);
  if (text === undefined) {
    body.on('error', () => undefined).destroy();
    throw new IntrospectionFailed('the answer of the identity source is too large');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new IntrospectionFailed('the answer of the identity source is not JSON', { cause: error });
  }
}

/**
 * Reads the id of the user: `id` of a forge, or `sub` of OpenID Connect. An answer without it names no user: some forges
 * have one for visitors.
 */
function userFacts(body: unknown): CallerFacts | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const id = 'id' in body ? body.id : 'sub' in body ? body.sub : undefined;
  if (typeof id !== 'string' && typeof id !== 'number') return undefined;
  return { kind: 'user', userId: String(id) };
}

function factsOf(body: unknown): CallerFacts | undefined {
  if (!answerSchema.Check(body)) throw new IntrospectionFailed('the answer has not the form of an introspection');
  const answer: Answer = body;
  if (!answer.active) return undefined;
  const required = (value: string | undefined, name: string): string => {
    if (value === undefined) throw new IntrospectionFailed(`the answer has no ${name}`);
    return value;
  };
  switch (answer.kind ?? 'personal') {
    case 'installation':
      return {
        kind: 'installation',
        installationId: required(answer.installation, 'installation'),
        repositories: answer.repositories ?? 0,
        users: answer.users ?? 0,
        hosted: answer.hosted ?? false,
      };
    case 'workflow':
      return {
        kind: 'workflow',
        repositoryId: required(answer.repository, 'repository'),
        enterprise: answer.enterprise ?? false,
      };
    case 'personal':
    case 'app-user':
    case 'oauth-user':
      return {
        kind: 'user',
        userId: required(answer.user ?? answer.sub, 'user'),
        memberOf: answer.orgs ?? [],
        ...appOf(answer),
      };
  }
}

function appOf({ kind, app }: Answer): Pick<Extract<CallerFacts, { kind: 'user' }>, 'app'> {
  if (app === undefined || (kind !== 'app-user' && kind !== 'oauth-user')) return {};
  return {
    app: {
      kind: kind === 'app-user' ? 'platform' : 'oauth',
      ...(app.owner === undefined ? {} : { owner: organizationOf(app.owner) }),
      approvedBy: (app.approvedBy ?? []).map(organizationOf),
    },
  };
}

function organizationOf({ id, enterprise = false }: Static<typeof Org>): Organization {
  return { id, enterprise };
}
