import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Type } from 'typebox';

import { parseBoundedJson } from '../lib/bounded-json.ts';
import type { Clock } from '../lib/clock.ts';
import { hasCode } from '../lib/errors.ts';
import { lazyCheck } from '../lib/lazy-check.ts';

const TOKEN_SECONDS = 300;
const SESSION_HOURS = 24;
const MAX_TOKENS = 32;
const MAX_SESSIONS = 64;

const StoredSession = Type.Object({
  id: Type.String(),
  /** SHA-256 of the cookie, in hex. */
  digest: Type.String(),
  readOnly: Type.Boolean(),
  until: Type.String(),
});
const isStored = lazyCheck(
  Type.Object({ host: Type.String(), port: Type.Integer(), sessions: Type.Array(StoredSession) }),
);

type Address = Readonly<{ host: string; port: number }>;
export type Session = Readonly<{ id: string; digest: string; readOnly: boolean; until: Temporal.Instant }>;
type Token = Readonly<{ readOnly: boolean; until: Temporal.Instant }>;

/** One-time tokens and the sessions made of them. Secrets are kept as digests; sessions outlive the daemon. */
export class PageSessions {
  readonly #clock: Clock;
  readonly #path: string;
  readonly #tokens = new Map<string, Token>();
  readonly #sessions = new Map<string, Session>();
  #address: Address | undefined;

  constructor(clock: Clock, execRoot: string) {
    this.#clock = clock;
    this.#path = join(execRoot, 'page.json');
    this.#read();
  }

  /** The address at which the last daemon served sessions that still count; undefined: none. */
  get lastAddress(): Address | undefined {
    return this.#sessions.size === 0 ? undefined : this.#address;
  }

  /** Notes the address, for the next daemon. */
  servedAt(address: Address): void {
    this.#address = address;
    this.#write();
  }

  /** A token that opens one session. */
  token(readOnly: boolean): string {
    this.#expire();
    const token = secret();
    this.#tokens.set(sha256(token), { readOnly, until: this.#clock.now().add({ seconds: TOKEN_SECONDS }) });
    dropFirst(this.#tokens, MAX_TOKENS);
    return token;
  }

  /** Exchanges a token for a session; undefined if it is unknown, used or old. */
  open(token: string): { session: Session; cookie: string } | undefined {
    this.#expire();
    const key = sha256(token);
    const known = this.#tokens.get(key);
    if (known === undefined) return undefined;
    this.#tokens.delete(key);
    const cookie = secret();
    const session = {
      id: randomBytes(16).toString('hex'),
      digest: sha256(cookie),
      readOnly: known.readOnly,
      until: this.#clock.now().add({ hours: SESSION_HOURS }),
    };
    this.#sessions.set(session.id, session);
    dropFirst(this.#sessions, MAX_SESSIONS);
    this.#write();
    return { session, cookie };
  }

  /** The session of an id, if the cookie is its own. */
  find(id: string, cookie: string | undefined): Session | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || cookie === undefined || this.#isOver(session)) return undefined;
    return timingSafeEqual(Buffer.from(sha256(cookie)), Buffer.from(session.digest)) ? session : undefined;
  }

  /** Ends all of them. */
  clear(): void {
    this.#tokens.clear();
    this.#sessions.clear();
    rmSync(this.#path, { force: true });
  }

  #isOver({ until }: { until: Temporal.Instant }): boolean {
    return Temporal.Instant.compare(until, this.#clock.now()) <= 0;
  }

  #expire(): void {
    for (const [key, token] of this.#tokens) if (this.#isOver(token)) this.#tokens.delete(key);
    for (const [id, session] of this.#sessions) if (this.#isOver(session)) this.#sessions.delete(id);
  }

  #read(): void {
    try {
      const stored = parseBoundedJson(readFileSync(this.#path, 'utf8'));
      if (!isStored.Check(stored)) return;
      const sessions = stored.sessions.map((each) => ({ ...each, until: Temporal.Instant.from(each.until) }));
      for (const session of sessions) this.#sessions.set(session.id, session);
      this.#address = { host: stored.host, port: stored.port };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return;
      rmSync(this.#path, { force: true }); // unreadable sessions are none: people ask for a new page
    }
    this.#expire();
  }

  #write(): void {
    const { host = '', port = 0 } = this.#address ?? {};
    const sessions = [...this.#sessions.values()].map((each) => ({ ...each, until: each.until.toString() }));
    writeFileSync(`${this.#path}.new`, JSON.stringify({ host, port, sessions }), { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): string {
  return hash('sha256', text);
}

/** Removes the oldest entries above a limit. */
function dropFirst(map: Map<string, unknown>, limit: number): void {
  for (const key of map.keys()) {
    if (map.size <= limit) return;
    map.delete(key);
  }
}
