import { CATEGORIES, type Category, type Decision, type RateStatus, type Refusal } from './types.ts';

/** How refusals are worded; the parts that clients decide by cannot be changed. */
export type RefusalStyle = Readonly<{
  /**
   * 403 unless configured: Octokit's retry plugin repeats a 429 after 1, 4 and 9 seconds, whatever `retry-after` and
   * `x-ratelimit-reset` say, and takes a 403 as it should.
   */
  status?: 403 | 429;
  /** `retry-after` on primary refusals too. */
  retryAfter?: boolean;
  /** Without fragment; clients look at the fragment. */
  documentationUrl?: string;
}>;

/** A refusal as it goes over the wire. */
export type RefusalResponse = Readonly<{
  status: 403 | 429 | 503;
  /** The reason phrase, which is all that a client of HEAD sees. Undefined: the status's own. */
  statusText?: string;
  headers: Record<string, string>;
  /** JSON. The server leaves it out of answers to HEAD. */
  body: string;
}>;

/** The headers of every response: those of the upstream, its errors and 304s, refusals, and the gateway's own. */
export function headersOf(decision: Decision, style: RefusalStyle = {}): Record<string, string> {
  const headers: Record<string, string> = {
    'x-ratelimit-limit': String(decision.limit),
    'x-ratelimit-remaining': String(decision.remaining),
    'x-ratelimit-used': String(decision.used),
    'x-ratelimit-reset': String(decision.reset),
    'x-ratelimit-resource': decision.resource,
  };
  // By default not with a primary refusal: its wait is the reset, and clients take `retry-after` for the sign of a secondary one.
  if (!decision.allowed && (decision.kind !== 'primary' || style.retryAfter === true))
    headers['retry-after'] = String(decision.retryAfterSeconds);
  return headers;
}

/** The response to a refused request, in the form that Octokit, PyGithub, go-github and gh understand. */
export function refusalOf(refusal: Refusal, style: RefusalStyle = {}): RefusalResponse {
  const { status = 403, documentationUrl = '/rate_limit' } = style;
  const headers = { ...headersOf(refusal, style), 'content-type': 'application/json; charset=utf-8' };
  const body = (message: string, fragment: string): string =>
    JSON.stringify({ message, documentation_url: `${documentationUrl}#${fragment}` });
  switch (refusal.kind) {
    case 'primary':
      return {
        status,
        headers,
        body: body(`API rate limit exceeded for ${refusal.caller.label}.`, 'primary-rate-limits'),
      };
    case 'secondary':
      return {
        status,
        statusText: 'Secondary rate limit exceeded',
        headers,
        body: body(
          'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
          'secondary-rate-limits',
        ),
      };
    case 'banned':
      // Worded like the refusals that led to it.
      if (refusal.refusedBy === 'primary') {
        const what = `API rate limit exceeded for ${refusal.caller.label}.`;
        const why = 'You kept sending requests while you were over it and have been blocked.';
        return { status: 403, headers, body: body(`${what} ${why}`, 'primary-rate-limits') };
      }
      return {
        status: 403,
        statusText: 'Secondary rate limit exceeded',
        headers,
        body: body(
          'You kept sending requests while you were over a secondary rate limit and have been blocked. Please wait a few minutes before you try again.',
          'secondary-rate-limits',
        ),
      };
    case 'unavailable':
      return {
        status: 503,
        headers,
        body: JSON.stringify({ message: 'The rate limits cannot be checked at the moment. Please try again.' }),
      };
  }
}

/** The body of `GET /rate_limit`. `rate` is deprecated and equals `core`. */
export type StatusBody = { resources: Record<string, RateStatus>; rate: RateStatus };

/** `without`: categories that the API version in use no longer has (`source_import` in the next one). */
export function statusBody(
  status: Readonly<Record<Category, RateStatus>>,
  without: readonly Category[] = [],
): StatusBody {
  const shown = CATEGORIES.filter((category) => !without.includes(category));
  return {
    resources: Object.fromEntries(shown.map((category) => [category, numbersOf(status[category])])),
    rate: numbersOf(status.core),
  };
}

function numbersOf({ limit, used, remaining, reset }: RateStatus): RateStatus {
  return { limit, used, remaining, reset };
}
