import type { IncomingHttpHeaders } from 'node:http';

import { type Credential, credentialIn } from '@gantry/limiter/credentials.ts';

import type { Config } from '../config/schema.ts';

/** A credential as it was shown. */
export type Shown = Readonly<{
  credential: Credential;
  /** The header by which the forge can be asked about it. */
  header: Readonly<{ name: string; value: string }>;
}>;

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

  /** Order of precedence: Authorization, other headers, query, cookies. */
  find(headers: IncomingHttpHeaders, url: string): Shown | undefined {
    const { authorization } = headers;
    if (authorization !== undefined) {
      return { credential: credentialIn(authorization), header: { name: 'authorization', value: authorization } };
    }
    return this.#none ? undefined : (this.#inHeaders(headers) ?? this.#inQuery(url) ?? this.#inCookies(headers));
  }

  #inHeaders(headers: IncomingHttpHeaders): Shown | undefined {
    for (const name of this.#headers) {
      const value = headers[name];
      if (typeof value === 'string') return shown(value, { name, value });
    }
    return undefined;
  }

  /** The forge is asked with the token as Bearer: a query could end up in its log. */
  #inQuery(url: string): Shown | undefined {
    const mark = url.indexOf('?');
    if (this.#parameters.length === 0 || mark < 0) return undefined;
    const query = new URLSearchParams(url.slice(mark));
    for (const name of this.#parameters) {
      const value = query.get(name);
      if (value !== null) return shown(value, { name: 'authorization', value: `Bearer ${value}` });
    }
    return undefined;
  }

  #inCookies({ cookie }: IncomingHttpHeaders): Shown | undefined {
    if (this.#cookies.length === 0 || cookie === undefined) return undefined;
    for (const pair of cookie.split(';')) {
      const equals = pair.indexOf('=');
      const name = pair.slice(0, equals).trim();
      const value = pair.slice(equals + 1).trim();
      if (this.#cookies.includes(name)) return shown(value, { name: 'cookie', value: `${name}=${value}` });
    }
    return undefined;
  }
}

/** Checks the syntax of a Bearer token, wherever the token stands. */
function shown(token: string, header: Shown['header']): Shown {
  return { credential: credentialIn(`Bearer ${token}`), header };
}
