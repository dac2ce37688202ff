/**
 * The words that the limiter, its stores and the gateway share.
 *
 * The path of a request: who is it (`callerFrom` in `primary.ts`), what is it (`RateLimiter.endpoint`, once per route),
 * may it (`RateLimiter.admit`), what is said about it (`headersOf` and `refusalOf` in `present.ts`), it is over
 * (`Admission.end`).
 */

/** The categories of `GET /rate_limit`, in the order in which they are shown. */
export const CATEGORIES = [
  'core',
  'search',
  'code_search',
  'graphql',
  'integration_manifest',
  'dependency_snapshots',
  'code_scanning_upload',
  'actions_runner_registration',
  'source_import',
  'scim',
] as const;

export type Category = (typeof CATEGORIES)[number];

/** The limits of one decision. The order is the order of the bits in a set of limits. */
export const LIMITS = [
  'primary',
  'points',
  'concurrent',
  'cpu',
  'graphql-cpu',
  'content-minute',
  'content-hour',
] as const;

export type LimitName = (typeof LIMITS)[number];

export type CallerKind = 'ip' | 'user' | 'installation' | 'oauth-app' | 'workflow-repository';

/** The owner of the quota that a request spends, and its size for this request. */
export type Caller = Readonly<{
  kind: CallerKind;
  /** Names the counters: one per address, user, installation, app or repository, whatever token was shown. */
  key: string;
  /** The hourly quota of the core category. It may differ between requests of one key: it depends on the acting app. */
  limit: number;
  /** How a refusal names the caller: `user ID 42`. Shown to the caller. */
  label: string;
}>;

/**
 * `fixed`: a window begins with a caller's first request and ends as a whole (the default). `sliding`: what was spent
 * counts for the length of the window, whenever that was (`window-form.ts`).
 */
export type WindowForm = 'fixed' | 'sliding';

/** A window of a limit. */
export type LimitWindow = Readonly<{ windowSeconds: number; window?: WindowForm }>;

/** A limit on what is counted in a window. Infinity: none. */
export type Quota = LimitWindow & Readonly<{ limit: number }>;

export type CategoryRule = LimitWindow &
  Readonly<{
    /**
     * `caller`: the caller's own quota (`Caller.limit`). `off`: no window of its own, its requests count in core; core
     * itself then never refuses, and shows nothing as used.
     */
    limit: number | 'caller' | 'off';
    /** Another limit for callers without a credential. */
    anonymousLimit?: number;
    /** Further windows for the same requests, for every caller; all of them must have room. */
    also?: readonly Readonly<{ limit: number; windowSeconds: number }>[];
  }>;

/** Every number of the limits. `limitRules` in `rules.ts` has the specification's, and checks others. */
export type LimitRules = Readonly<{
  categories: Readonly<Record<Category, CategoryRule>>;
  /** Requests of one caller under way at once, REST and GraphQL together. */
  concurrent: Readonly<{
    limit: number;
    /** Seconds in `retry-after`, since nobody knows when a pending request will end. */
    retrySeconds: number;
  }>;
  /** Points for each REST endpoint. */
  restPoints: Quota;
  /** Points for GraphQL as a whole. */
  graphqlPoints: Quota;
  /** Seconds of the server's time in each window, and how many of them may be GraphQL's. */
  cpu: LimitWindow & Readonly<{ totalSeconds: number; graphqlSeconds: number }>;
  contentPerMinute: Quota;
  contentPerHour: Quota;
  /**
   * The cost of a request may change with its answer (`Admission.setCost`): a refusal is then no longer certain until the
   * reset, and a shared store is asked about each request.
   */
  costsChange?: boolean;
  /** These limits count and report (`Admission.shadowed`) but do not refuse. */
  shadow: readonly LimitName[];
  /** A caller refused this often without a pause of `withinSeconds` gets nothing for `banSeconds`. Absent: nobody is banned. */
  ban?: Readonly<{ refusals: number; withinSeconds: number; banSeconds: number }>;
}>;

/** Properties of a route for the limiter. */
export type EndpointDefinition = Readonly<{
  /** Method and route template, `GET /repos/{owner}/{repo}`: one count of points each. GraphQL has one name for all. */
  name: string;
  /** Default `core`, or `graphql` with `api: 'graphql'`. */
  category?: Category;
  /** Default `rest`. */
  api?: 'rest' | 'graphql';
  /** Default 1 where the name begins with GET, HEAD or OPTIONS, else 5. GraphQL gives the points of each request to `admit`. */
  points?: number;
  /** False: costs nothing of the primary quota, and passes when that is used up, as `GET /rate_limit` does. */
  primary?: boolean;
  /** Creates content; the numbers are this endpoint's own, lower limits beside the general ones. */
  content?: boolean | Readonly<{ perMinute?: number; perHour?: number }>;
  /** Limits that count and report for this endpoint but do not refuse, beside those of `LimitRules.shadow`. */
  shadow?: readonly LimitName[];
}>;

/** A route that a limiter and its store know; made by `RateLimiter.endpoint`, once per route and not per request. */
export type Endpoint = Readonly<{
  name: string;
  /** The store's list that it belongs to: `LimitStore.endpoints`. */
  of: object;
  /** In its store the windows `id`, `id + 1` and `id + 2` of a caller are this endpoint's: points, content per minute, per hour. */
  id: number;
  /** A number that is equal in all processes: names the endpoint's windows in a shared store. Below 2^46. */
  hash: number;
  category: Category;
  categoryIndex: number;
  graphql: boolean;
  points: number;
  primary: boolean;
  content: boolean;
  /** Infinity: no limit of its own. */
  contentPerMinute: number;
  contentPerHour: number;
  /** Bit n is set: `LIMITS[n]` is in shadow mode here. */
  shadow: number;
  /** The route in core, where its requests count while its own category is off. Undefined: it is in core. */
  inCore: Endpoint | undefined;
}>;

/** One category's state, with the field names of the headers and of `GET /rate_limit`: always `limit = used + remaining`. */
export type RateStatus = Readonly<{
  limit: number;
  used: number;
  remaining: number;
  /** UTC epoch seconds. */
  reset: number;
}>;

/** The state that headers show: that of the category's window with the least left. */
export type ShownStatus = RateStatus & Readonly<{ resource: Category; windowSeconds: number }>;

/** The request may pass. It counts as under way until `end` is called. */
export type Admission = ShownStatus &
  Readonly<{
    allowed: true;
    caller: Caller;
    endpoint: Endpoint;
    /** The limits in shadow mode that would have refused it. */
    shadowed: readonly LimitName[];
    /** The store did not answer; this process decided on its own counts (`onStoreFailure: 'open'`). */
    unchecked: boolean;
    /**
     * The request has ended, in whatever way: gives back its place among the concurrent ones and charges the time
     * from its dispatch to the upstream until the end of the answer (default: the time since `begin` in which this process
     * did not stand still, or since the admission).
     * Must be called once; more often does no harm.
     */
    end(cpuSeconds?: number): void;
    /** Work on it begins, or goes on after `pause`: its time is charged in steps, and `end` settles what is left. */
    begin(): void;
    /** It waits, for its client: this time is not charged. */
    pause(): void;
    /** It goes on, but work on it has ended: charges what is left of this time (default: that since `begin`). */
    stop(cpuSeconds?: number): void;
    /** Charges points that were not known before. */
    chargePoints(points: number): void;
    /**
     * Sets its cost of the primary quota, 1 until then, when the answer is known; `used` and `remaining` follow. Nothing
     * changes for an endpoint without a primary limit, nor after the end. Rules with `costsChange` are needed.
     */
    setCost(cost: number): void;
    /** Ends it as if it had never been: it has turned out to be another caller's. */
    giveBack(): void;
    /** Calls `end()`, so that `using` covers every way out. */
    [Symbol.dispose](): void;
  }>;

/** The request is refused and has spent nothing. */
export type Refusal = ShownStatus &
  Readonly<{
    allowed: false;
    caller: Caller;
    endpoint: Endpoint;
    /** `unavailable`: the store did not answer and `onStoreFailure` is `closed`. */
    kind: 'primary' | 'secondary' | 'banned' | 'unavailable';
    /** The limit, where one refused. */
    refusedBy?: LimitName;
    /** At least 1. A client that waits this long, or exactly until the reset, is admitted by the limit that refused. */
    retryAfterSeconds: number;
    /** How often in a row this caller was refused without a pause. */
    repeated: number;
    /** Does nothing; it is here so that `using` and `end` need no check first. */
    end(cpuSeconds?: number): void;
    [Symbol.dispose](): void;
  }>;

export type Decision = Admission | Refusal;

/** A caller that is limited now: a line of `explain`. */
export type LimitedCaller = Readonly<{
  key: string;
  refusedBy: LimitName | 'ban';
  /** The category of the primary limit, or the endpoint of a secondary one. */
  where: string;
  untilSeconds: number;
  /** Requests that this process has refused since then, without a pause. */
  refused: number;
}>;

/** A refusal, as other processes that ban the same callers need to know it. */
export type RefusalNote = Readonly<{
  key: string;
  refusedBy: LimitName;
  where: string;
  untilSeconds: number;
  /** In the past: not banned. */
  bannedUntilSeconds: number;
  /** Status in the headers. */
  shown: ShownStatus;
}>;

/** Question to a store about one request; all the limits at once. */
export type Ask = Readonly<{
  key: string;
  /** How much of the category's window may be used; Infinity when it never refuses. */
  quota: number;
  endpoint: Endpoint;
  points: number;
  /** Its share of the primary quota: 1 for most requests, 0 for an endpoint without a primary limit. */
  cost: number;
  rules: LimitRules;
}>;

/** A store's answer. */
export type Verdict = Readonly<{
  /** Index in `LIMITS` of the limit that refuses, or -1. The primary one before others, then the longest wait. */
  refusedBy: number;
  /** When the refusing window ends, in epoch seconds; 0 where it has no end (concurrency). */
  until: number;
  /** Bit n is set: `LIMITS[n]` is in shadow mode and would have refused. */
  shadowed: number;
  /** The category's window with the least left: 0 is its own, 1 the first of `also`. */
  window: number;
  /** Use of this window, after this request. */
  used: number;
  reset: number;
  /** The store's time in epoch milliseconds. */
  nowMs: number;
  /** Names the place among the concurrent requests to `release`. */
  ticket: number;
}>;

/** One window of a caller as seen from outside. */
export type WindowState = Readonly<{
  /** A category, `primary core 60 s` of its further windows, `points GET /x`, `content-minute`, `content-hour`, `content-minute POST /x`, `cpu` or `graphql-cpu`. */
  name: string;
  /** Requests, points, or milliseconds of CPU time. */
  used: number;
  /** Epoch seconds. Of a sliding window: when the first of it no longer counts. */
  reset: number;
}>;

export type CallerState = Readonly<{ key: string; underWay: number; windows: readonly WindowState[] }>;
