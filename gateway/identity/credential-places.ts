import type { IncomingHttpHeaders } from 'node:http';

import { type Credential, credentialIn, tokenOf } from '@gantry/limiter/credentials.ts';

import type { Config } from '../config/schema.ts';

/** A credential as it was shown. */
export type Shown = Readonly<{ credential: Credential; isCookie: boolean; header: Header }>;

type Header = Readonly<{ name: string; value: string }>;

/** A question to the forge. */
export type Reading = Readonly<{
  /** Names the credential by its meaning, not by its spelling. */
  key: string;
  /** The header by which the forge is asked, in one spelling. */
  header: Header;
  token: string;
}>;

/**
 * The meanings that a credential may have to the forge. A Basic credential may hold a token beside any name, or be a user
 * and a password: with the name left out of the key, a password would stand for whoever has the same one.
 */
export function readingsOf({ credential, header, isCookie }: Shown): Reading[] {
  if (credential.kind === 'token') {
    const { token } = credential;
    if (isCookie) return [{ key: `${header.name} ${header.value}`, header, token }];
    const value = header.name === 'authorization' ? `${schemeOf(header.value)} ${token}` : header.value;
    return [{ key: `token ${token}`, header: { ...header, value }, token }];
  }
  if (credential.kind !== 'basic') return [];
  const token = tokenOf(credential);
  const pair = Buffer.from(header.value.slice(header.value.indexOf(' ') + 1), 'base64').toString('base64');
  const asPair = { key: `basic ${pair}`, header: { ...header, value: `Basic ${pair}` }, token };
  if (credentialIn(`Bearer ${token}`).kind !== 'token') return [asPair];
  return [{ key: `token ${token}`, header: { ...header, value: `Bearer ${token}` }, token }, asPair];
}

/** Where a credential may stand besides Authorization; names in lower case. */
export class CredentialPlaces {
  readonly #headers: readonly string[];
  readonly #parameters: readonly string[];
  readonly #cookies: readonly string[];
  readonly #none: boolean;

  constructor({ headers, queryParameters, cookies }: Config['credentials']) {
    this.#headers = headers.map((name) => name.toLowerCase());
    this.#parameters = queryParameters;
    this.#cookies = cookies;
    this.#none = headers.length + queryParameters.length + cookies.length === 0;
  }

  /** Whether a credential may stand in this header besides Authorization. */
  isHeader(name: string): boolean {
    return this.#headers.includes(name);
  }

  /**
   * The request's credential. `several`: the upstream could go by another one than the gateway. A cookie counts where
   * nothing else stands: browsers send cookies with every request.
   */
  find(headers: IncomingHttpHeaders, url: string): Shown | 'several' | undefined {
    const { authorization } = headers;
    const first = authorization === undefined ? undefined : inAuthorization(authorization);
    if (this.#none) return first;
    const all = [...(first === undefined ? [] : [first]), ...this.#inHeaders(headers), ...this.#inQuery(url)];
    const one = all[0];
    if (one === undefined) return this.#inCookies(headers);
    return all.every((other) => meaningOf(other) === meaningOf(one)) ? one : 'several';
  }

  #inHeaders(headers: IncomingHttpHeaders): Shown[] {
    return this.#headers.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [showCredential(value, { name, value })] : [];
    });
  }

  /** The forge is asked with the token as Bearer: a query could end up in its log. */
  #inQuery(url: string): Shown[] {
    const mark = url.indexOf('?');
    if (this.#parameters.length === 0 || mark < 0) return [];
    const query = new URLSearchParams(url.slice(mark));
    const values = this.#parameters.flatMap((name) => query.getAll(name));
    return values.map((value) => showCredential(value, { name: 'authorization', value: `Bearer ${value}` }));
  }

  #inCookies({ cookie }: IncomingHttpHeaders): Shown | undefined {
    if (this.#cookies.length === 0 || cookie === undefined) return undefined;
    for (const pair of cookie.split(';')) {
      const equals = pair.indexOf('=');
      const name = pair.slice(0, equals).trim();
      const value = pair.slice(equals + 1).trim();
      if (this.#cookies.includes(name))
        return showCredential(value, { name: 'cookie', value: `${name}=${value}` }, true);
    }
    return undefined;
  }
}

function inAuthorization(authorization: string): Shown {
  const header = { name: 'authorization', value: authorization };
  return { credential: credentialIn(authorization), isCookie: false, header };
}

/** The token, or the malformed text. */
function meaningOf({ credential, header }: Shown): string {
  if (credential.kind === 'token') return credential.token;
  return credential.kind === 'basic' ? tokenOf(credential) : `malformed ${header.value}`;
}

/** Checks the syntax of a Bearer token, wherever the token stands. */
function showCredential(token: string, header: Header, isCookie = false): Shown {
  return { credential: credentialIn(`Bearer ${token}`), isCookie, header };
}

function schemeOf(authorization: string): 'token' | 'Bearer' {
  return authorization.slice(0, 'token '.length).toLowerCase() === 'token ' ? 'token' : 'Bearer';
}
