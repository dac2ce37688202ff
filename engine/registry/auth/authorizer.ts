import { Type } from 'typebox';

import { parseBoundedJson } from '../../lib/bounded-json.ts';
import type { Clock } from '../../lib/clock.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { readText } from '../connection/read-body.ts';
import type { Transport } from '../connection/transport.ts';
import { refusalOf, RegistryError } from '../errors.ts';
import type { Challenge } from './challenge.ts';
import { parseChallenges } from './challenge.ts';
import type { Credentials } from './credentials.ts';

const TokenAnswer = lazyCheck(
  Type.Object({
    token: Type.Optional(Type.String()),
    access_token: Type.Optional(Type.String()),
    refresh_token: Type.Optional(Type.String()),
    expires_in: Type.Optional(Type.Number()),
  }),
);

const TOKEN_BYTES = 1024 * 1024;
const CLIENT_ID = 'docker';
/** The least lifetime of a token, whatever the server states. */
const MIN_SECONDS = 60;

type Token = { value: string; endsAt: number };

/** Authenticates to a registry in the way that it asks for: with a name and a password, or with a token for a scope. */
export class Authorizer {
  readonly #transport: Transport;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #isSecure: boolean;
  readonly #tokens = new Map<string, Token>();
  #challenges: readonly Challenge[] = [];
  /** Whether the token server is asked for a token to replace the password, as by a login. */
  wantsIdentity = false;
  identityToken = '';

  constructor(transport: Transport, credentials: Credentials, clock: Clock, isSecure: boolean) {
    this.#transport = transport;
    this.#credentials = credentials;
    this.#clock = clock;
    this.#isSecure = isSecure;
  }

  /** Takes the registry's challenges; earlier tokens are dropped. */
  challenged(challenges: readonly Challenge[]): void {
    if (challenges.length === 0) return;
    this.#challenges = challenges;
    this.#tokens.clear();
  }

  /** The value of `Authorization` for these scopes, if the registry asks for one. */
  async header(scopes: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    const { registryToken, username, password } = this.#credentials;
    if (registryToken !== '') return `Bearer ${registryToken}`;
    const bearer = this.#challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined) return `Bearer ${await this.#token(bearer, scopes, signal)}`;
    if (!this.#challenges.some(({ scheme }) => scheme === 'basic')) return undefined;
    if (username === '' || password === '')
      throw new RegistryError('no basic auth credentials', { code: 'NO_CREDENTIALS' });
    return basic(username, password);
  }

  async #token(challenge: Challenge, scopes: readonly string[], signal: AbortSignal): Promise<string> {
    const key = scopes.join(' ');
    const known = this.#tokens.get(key);
    const now = this.#clock.now().epochMilliseconds;
    if (known !== undefined && known.endsAt > now) return known.value;
    const answer = await this.#ask(challenge, scopes, signal);
    const value = answer.token || answer.access_token;
    if (value === undefined) throw new RegistryError('authorization server did not include a token in the response');
    if (answer.refresh_token !== undefined) this.identityToken = answer.refresh_token;
    const seconds = Math.max(answer.expires_in ?? 0, MIN_SECONDS);
    this.#tokens.set(key, { value, endsAt: now + seconds * 900 }); // renewed before its end
    return value;
  }

  async #ask({ parameters }: Challenge, scopes: readonly string[], signal: AbortSignal) {
    const { realm = '', service = '' } = parameters;
    const { username, password, identityToken } = this.#credentials;
    const url = URL.canParse(realm) ? new URL(realm) : undefined;
    if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
      throw new RegistryError('invalid token auth challenge realm');
    }
    const hasSecret = identityToken !== '' || password !== '';
    if (hasSecret && this.#isSecure && url.protocol === 'http:') {
      throw new RegistryError(`the token server ${url.origin} is not secure: it gets no credentials`);
    }
    if (identityToken !== '') {
      const form = { grant_type: 'refresh_token', service, client_id: CLIENT_ID, scope: scopes.join(' ') };
      const body = Buffer.from(new URLSearchParams({ ...form, refresh_token: identityToken }).toString());
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      return await this.#answer(url, { method: 'POST', headers, body, signal });
    }
    if (service !== '') url.searchParams.set('service', service);
    for (const scope of scopes) url.searchParams.append('scope', scope);
    if (username === '' || password === '') return await this.#answer(url, { method: 'GET', signal });
    url.searchParams.set('account', username);
    url.searchParams.set('client_id', CLIENT_ID);
    if (this.wantsIdentity) url.searchParams.set('offline_token', 'true');
    return await this.#answer(url, { method: 'GET', headers: { authorization: basic(username, password) }, signal });
  }

  async #answer(url: URL, sent: Parameters<Transport['send']>[1]) {
    const answer = await this.#transport.send(url, sent);
    const body = await readText(answer, TOKEN_BYTES, 'the answer of the token server');
    if (answer.statusCode >= 300) {
      const [challenge] = parseChallenges(answer.headers['www-authenticate']);
      throw refusalOf({
        status: answer.statusCode,
        statusText: answer.statusText,
        body,
        retryAfter: answer.headers['retry-after'],
        challenge: challenge?.scheme === 'bearer' ? challenge.parameters : undefined,
      });
    }
    const json = parse(body);
    if (TokenAnswer.Check(json)) return json;
    throw new RegistryError('unable to decode token response');
  }
}

function parse(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined; // refused by the check
  }
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
