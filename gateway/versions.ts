import type { IncomingHttpHeaders } from 'node:http';

import type { Category } from '@gantry/limiter/types.ts';

import type { Config } from './config/schema.ts';

/** The specification's header, and GitHub's, which its clients send. */
const HEADERS = ['x-platform-api-version', 'x-github-api-version'] as const;
const NONE: readonly Category[] = [];
const GONE: readonly Category[] = ['source_import'];

/** The versions of the API that are served, and what differs between them. */
export class ApiVersions {
  readonly #known: ReadonlySet<string>;
  readonly #next: ReadonlySet<string>;

  constructor({ known, next }: Config['apiVersions']) {
    this.#known = new Set([...known, ...next]);
    this.#next = new Set(next);
  }

  /** Why a request is refused; undefined: it is not. */
  problem(headers: IncomingHttpHeaders): string | undefined {
    for (const name of HEADERS) {
      const version = headers[name];
      if (version === undefined || this.#known.has(String(version))) continue;
      return `The API version is not supported: ${name} may be ${[...this.#known].join(', ')}.`;
    }
    return undefined;
  }

  /** Categories that the version asked for no longer has. */
  withoutCategories(headers: IncomingHttpHeaders): readonly Category[] {
    return this.#next.size > 0 && HEADERS.some((name) => this.#next.has(String(headers[name]))) ? GONE : NONE;
  }
}
