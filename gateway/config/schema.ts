import { LARGEST_CPU_SECONDS, LARGEST_LIMIT, LONGEST_WINDOW_SECONDS, MOST_CONCURRENT } from '@gantry/limiter/rules.ts';
import { CATEGORIES, LIMITS } from '@gantry/limiter/types.ts';
import { WINDOW_FORMS } from '@gantry/limiter/window-form.ts';
import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;
/** Of what is listed by id. Without a default of the whole, those of its keys are not filled in. */
const entry = { ...closed, default: {} } as const;
const count = (description: string, initial: number, minimum = 0) =>
  Type.Integer({ default: initial, minimum, description });
const text = (description: string, initial = '') => Type.String({ default: initial, description });
const list = (description: string, initial: string[] = []) =>
  Type.Array(Type.String(), { default: initial, description });
const versions = (description: string, initial: string[] = []) =>
  Type.Array(Type.String({ pattern: String.raw`^\d{4}-\d{2}-\d{2}$` }), { default: initial, description });
const upTo = (maximum: number, description: string, initial: number, minimum = 0) =>
  Type.Integer({ default: initial, minimum, maximum, description });
/** A secondary limit: these may be off. */
const orOff = (maximum: number, description: string, initial: number) =>
  Type.Union([Type.Integer({ minimum: 0, maximum }), Type.Literal('off')], { default: initial, description });
const windowOf = (initial: number) => upTo(LONGEST_WINDOW_SECONDS, 'length of the window', initial, 1);
const windowForm = Type.Enum([...WINDOW_FORMS], {
  default: 'fixed',
  description: 'fixed, or sliding: never more than the limit within the length of the window',
});
const quota = (description: string, limit: number, windowSeconds: number) =>
  Type.Object(
    {
      limit: orOff(LARGEST_LIMIT, 'how much fits into a window', limit),
      windowSeconds: windowOf(windowSeconds),
      window: windowForm,
    },
    { ...closed, default: {}, description },
  );

const Listen = Type.String({ minLength: 1 });

const Tls = Type.Object(
  {
    certFile: Type.String({ description: 'certificate in PEM, with those between it and the root' }),
    keyFile: Type.String({ description: 'its key in PEM' }),
  },
  { ...closed, description: 'the certificate of addresses with tls:, read again with the settings' },
);

const Store = Type.Object(
  {
    kind: Type.Enum(['memory', 'sqlite', 'redis'], { default: 'memory', description: 'memory, sqlite or redis' }),
    path: Type.Optional(Type.String({ minLength: 1, description: 'sqlite: the file' })),
    flushMs: count('sqlite: what a killed gateway loses at most', 200, 10),
    url: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'redis: redis://host:port, or the path of a socket; with sentinels redis://NAME, the name of the master',
      }),
    ),
    sentinels: Type.Optional(
      Type.Array(Type.String(), { minItems: 1, description: 'redis: servers of Sentinel, redis://host:port' }),
    ),
    cluster: Type.Optional(
      Type.Array(Type.String(), { minItems: 1, description: 'redis: some servers of a cluster, redis://host:port' }),
    ),
    prefix: text('redis: begins every key', 'gantry:'),
    onFailure: Type.Enum(['open', 'closed'], {
      default: 'closed',
      description: 'redis does not answer: closed refuses with 503, open lets each gateway count by itself',
    }),
    timeoutMs: count('redis: the longest wait for an answer', 500, 1),
    leaseSeconds: count('redis: how long requests of a killed gateway count as under way', 30, 3),
  },
  { ...closed, default: {}, description: 'where the counts live' },
);

const Installation = Type.Object(
  {
    least: count('least for an installation', 5000),
    hosted: count('installation on a hosted organization', 15_000),
    above: count('with more repositories, or users, than this each of them adds', 20),
    perRepository: count('added for each repository', 50),
    perUser: count('added for each user', 50),
    most: count('never more than this', 12_500),
  },
  { ...closed, default: {}, description: 'app installations' },
);

const Limits = Type.Object(
  {
    anonymous: count('requests without a credential, per address', 60),
    user: count('a user, whatever the token', 5000),
    userThroughEnterpriseApp: count('the same through an app of an enterprise organization', 15_000),
    installation: Installation,
    oauthClient: count('OAuth app with client id and secret', 5000),
    oauthClientOfEnterprise: count('the same, owned by an enterprise organization', 15_000),
    workflow: count('workflow token, per repository', 1000),
    workflowOfEnterprise: count('the same in an enterprise account', 15_000),
    ipv6PrefixBits: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 128,
      description: 'IPv6 addresses with these leading bits in common count as one',
    }),
  },
  { ...closed, default: {}, description: 'primary limits of the core category' },
);

const CategorySettings = (initial: 'caller' | 'off') =>
  Type.Object(
    {
      limit: Type.Union(
        [Type.Integer({ minimum: 0, maximum: LARGEST_LIMIT }), Type.Literal('caller'), Type.Literal('off')],
        {
          default: initial,
          description: "a number, caller (the caller's core limit) or off (shown with the core limit, never refused)",
        },
      ),
      windowSeconds: windowOf(3600),
      window: windowForm,
      anonymousLimit: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: LARGEST_LIMIT,
          description: 'another limit for callers without a credential',
        }),
      ),
      routes: Type.Optional(
        Type.Array(Type.String(), { description: 'method and path templates; replaces the built-in ones' }),
      ),
    },
    { ...closed, default: {} },
  );

const Secondary = Type.Object(
  {
    concurrent: Type.Object(
      {
        limit: orOff(MOST_CONCURRENT, 'requests of a caller under way at once', 100),
        retrySeconds: count('retry-after of such a refusal', 1, 1),
      },
      { ...closed, default: {}, description: 'REST and GraphQL together' },
    ),
    restPoints: quota('points for each REST endpoint', 900, 60),
    graphqlPoints: quota('points for GraphQL', 2000, 60),
    cpu: Type.Object(
      {
        totalSeconds: orOff(LARGEST_CPU_SECONDS, "seconds of the upstream's time in a window", 90),
        graphqlSeconds: orOff(LARGEST_CPU_SECONDS, 'of these for GraphQL', 60),
        windowSeconds: windowOf(60),
        window: windowForm,
      },
      { ...closed, default: {}, description: 'CPU time, estimated by the time of response' },
    ),
    contentPerMinute: quota('requests that create content', 80, 60),
    contentPerHour: quota('requests that create content', 500, 3600),
    readPoints: count('a REST GET, HEAD or OPTIONS', 1),
    writePoints: count('any other REST request', 5),
    queryPoints: count('a GraphQL request without mutations', 1),
    mutationPoints: count('a GraphQL request with mutations, or one that cannot be read', 5),
    graphqlCost: Type.Enum(['request', 'operation'], {
      default: 'request',
      description:
        'what these points are for: a request, or each operation in it, with batches, aliases and the messages of a WebSocket',
    }),
    unreadOperations: count('by operation: one that cannot be read counts as so many mutations', 10, 1),
    points: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      default: {},
      description: 'points of single endpoints, by method and path template',
    }),
    content: Type.Optional(
      Type.Array(
        Type.Object(
          {
            route: Type.String({ description: 'method and path template' }),
            perMinute: Type.Optional(
              Type.Integer({ minimum: 0, description: 'of this route alone, beside contentPerMinute' }),
            ),
            perHour: Type.Optional(
              Type.Integer({ minimum: 0, description: 'of this route alone, beside contentPerHour' }),
            ),
          },
          closed,
        ),
        { description: 'which routes create content; replaces the built-in ones' },
      ),
    ),
  },
  { ...closed, default: {}, description: 'secondary limits' },
);

const sha256 = (what: string) =>
  Type.String({ pattern: '^[0-9a-fA-F]{64}$', description: `SHA-256 of ${what}, in hexadecimal` });
const byId = <T extends ReturnType<typeof Type.Object>>(value: T, description: string) =>
  Type.Record(Type.String(), value, { default: {}, description });

const User = Type.Object({ orgs: list('ids of the organizations that the user is a member of') }, entry);
const Organization = Type.Object(
  {
    enterprise: Type.Boolean({ default: false, description: 'on the enterprise plan' }),
    hosted: Type.Boolean({ default: false, description: 'a hosted organization of the platform' }),
    members: Type.Optional(
      Type.Integer({ minimum: 0, description: 'how many users it has; default: those listed under users' }),
    ),
  },
  entry,
);
const App = Type.Object(
  {
    kind: Type.Enum(['platform', 'oauth'], { description: 'platform or oauth' }),
    owner: Type.Optional(Type.String({ description: 'id of the organization that owns it' })),
    approvedBy: list('ids of the organizations that approved it'),
    clientId: Type.Optional(Type.String({ minLength: 1, description: 'user of its Basic credential' })),
    clientSecretSha256: Type.Optional(sha256('the client secret')),
  },
  entry,
);
const InstallationIdentity = Type.Object(
  {
    app: Type.Optional(Type.String({ description: 'id of the app' })),
    org: Type.Optional(Type.String({ description: 'id of the organization it is installed on' })),
    user: Type.Optional(Type.String({ description: 'id of the user it is installed on' })),
    repositories: count('how many repositories it has', 0),
  },
  entry,
);
const Repository = Type.Object(
  {
    org: Type.Optional(Type.String({ description: 'id of the organization that owns it' })),
    user: Type.Optional(Type.String({ description: 'id of the user who owns it' })),
  },
  entry,
);

export const TOKEN_KINDS = ['personal', 'app-user', 'oauth-user', 'installation', 'workflow'] as const;

const Token = Type.Object(
  {
    sha256: sha256('the token'),
    kind: Type.Enum([...TOKEN_KINDS], { description: TOKEN_KINDS.join(', ') }),
    user: Type.Optional(Type.String({ description: 'id of the user: personal, app-user, oauth-user' })),
    app: Type.Optional(Type.String({ description: 'id of the app: app-user, oauth-user' })),
    installation: Type.Optional(Type.String({ description: 'id of the installation: installation' })),
    repository: Type.Optional(Type.String({ description: 'id of the repository: workflow' })),
  },
  closed,
);

const Identities = Type.Object(
  {
    users: byId(User, 'users by id'),
    orgs: byId(Organization, 'organizations by id'),
    apps: byId(App, 'apps by id'),
    installations: byId(InstallationIdentity, 'app installations by id'),
    repositories: byId(Repository, 'repositories by id'),
    tokens: Type.Array(Token, { default: [], description: 'tokens by the SHA-256 of each' }),
    unknown: Type.Enum(['refuse', 'address'], {
      default: 'refuse',
      description: 'a credential that nobody knows: refuse (401), or pass it on and count it on the source address',
    }),
  },
  { ...closed, default: {}, description: 'who the callers are' },
);

const Credentials = Type.Object(
  {
    headers: list('headers that hold a token: PRIVATE-TOKEN'),
    queryParameters: list('parameters of the query that hold a token: access_token, token'),
    cookies: list('cookies that hold a session of the web interface; one that nobody knows counts on its address'),
  },
  { ...closed, default: {}, description: 'where else than in Authorization a token may stand' },
);

const Network = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Za-z0-9._-]{1,100}$', description: 'names the network: network:NAME' }),
    ranges: list('addresses and CIDR ranges'),
    file: Type.Optional(Type.String({ description: 'more of them, one in a line; read again with the settings' })),
    limit: upTo(LARGEST_LIMIT, 'requests in the window of core, per address', 60),
    together: Type.Boolean({ default: false, description: 'all of the network counts as one caller' }),
  },
  { ...closed, default: {} },
);

const ShadowRoute = Type.Object(
  {
    route: Type.String({ description: 'method and path template' }),
    limits: Type.Array(Type.Enum([...LIMITS]), { default: [...LIMITS], description: 'which limits; default: all' }),
  },
  { ...closed, default: {} },
);

const Override = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: LARGEST_LIMIT, description: 'requests in the window of core' }),
    ),
    secondary: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: 1000 }), Type.Literal('off')], {
        description: 'so many times what others may of each secondary limit, or off',
      }),
    ),
  },
  entry,
);

const Introspection = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'where to ask' }),
    kind: Type.Enum(['userinfo', 'introspection'], {
      default: 'userinfo',
      description: "userinfo: GET with the caller's own credential; introspection: POST token=… as in RFC 7662",
    }),
    idField: text('userinfo: the field of the answer that is the id of the user', 'id'),
    authorizationFile: Type.Optional(
      Type.String({ description: 'introspection: file with the Authorization header of the gateway' }),
    ),
    timeoutMs: count('the longest wait', 2000, 1),
    cacheSeconds: count('how long a known token is not asked again', 60, 1),
    unknownSeconds: count('how long an unknown token is not asked again', 10, 1),
    cacheEntries: count('known tokens remembered at most, and as many unknown ones', 10_000, 1),
    concurrency: count('questions under way at most, in each worker', 32, 1),
    perAddress: count('of these for the requests of one address', 4, 1),
    slowPerSecond: count('questions in a second for an address that has used up its limit', 10, 1),
    waitMs: count('a question waits for its turn at most', 10_000, 1),
  },
  { ...closed, description: 'a forge that says whose token it is, for tokens that are not listed' },
);

const Timeouts = Type.Object(
  {
    headersMs: count('a client has sent its headers', 15_000, 100),
    requestMs: count('a client has sent its whole request', 300_000, 100),
    idleMs: count('nothing has moved on a connection of a client', 120_000, 100),
    keepAliveMs: count('a connection waits for its next request', 65_000, 100),
    upgradedIdleMs: count('nothing has moved on an upgraded connection; 0: no end', 0),
    connectMs: count('the upstream takes a connection', 5000, 1),
    upstreamHeadersMs: count('the upstream begins its answer', 60_000, 1),
    upstreamBodyMs: count('the upstream sends the next piece of its answer', 60_000, 1),
    drainMs: count('requests under way may end after SIGTERM', 30_000),
  },
  { ...closed, default: {}, description: 'how long anything may take' },
);

const Sizes = Type.Object(
  {
    headerBytes: count('headers of a request', 32_768, 1024),
    graphqlScanBytes: count('of a GraphQL body are read to tell a query from a mutation', 65_536, 1),
    connections: count('open connections of clients, in each worker', 10_000, 1),
    connectionsPerAddress: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'of these from one address that is none of trustProxy; default: a quarter of connections, at least 32',
      }),
    ),
    upstreamConnections: count('open connections to the upstream, in each worker', 1024, 1),
  },
  { ...closed, default: {}, description: 'how large anything may be' },
);

/** Every setting of the gateway; the keys are those of the configuration file. */
export const Config = Type.Object(
  {
    listen: Type.Union([Listen, Type.Array(Listen, { minItems: 1 })], {
      default: '127.0.0.1:8080',
      description: 'address:port, tls:address:port or unix:/path, or a list of them',
    }),
    upstream: Type.String({ pattern: '^https?://[^/?#@]+/?$', description: 'http://host:port of the server behind' }),
    basePath: Type.String({
      default: '',
      pattern: '^(/[^/?#%]+)*$',
      description: 'path of the API on the upstream, such as /api/v1',
    }),
    outsideBasePath: Type.Enum(['limit', 'pass'], {
      default: 'limit',
      description: 'requests outside basePath: count them as core, or pass them without limits',
    }),
    pathParameters: Type.Enum(['refuse', 'remove'], {
      default: 'refuse',
      description:
        'what follows a semicolon in a segment of a path: refuse where the path would be another one without it, or remove it from every path',
    }),
    overrideHeaders: list(
      'headers that give another method or path, which some servers obey, are dropped but for these: X-HTTP-Method-Override',
    ),
    graphqlPaths: list('where GraphQL is served; absolute', ['/graphql', '/api/graphql']),
    workers: Type.Integer({ default: 1, minimum: 1, maximum: 256, description: 'processes that share the port' }),
    tls: Type.Optional(Tls),
    store: Store,
    trustProxy: list('addresses or CIDR ranges whose X-Forwarded-For is believed'),
    limits: Limits,
    categories: Type.Object(
      Object.fromEntries(CATEGORIES.map((name) => [name, CategorySettings(name === 'core' ? 'caller' : 'off')])) as {
        [Name in (typeof CATEGORIES)[number]]: ReturnType<typeof CategorySettings>;
      },
      { ...closed, default: {}, description: 'the categories of GET /rate_limit' },
    ),
    routes: list('further path templates, each an endpoint per method: /things/{id}'),
    secondary: Secondary,
    webContent: list(
      'actions of the web interface, outside basePath, that create content: POST /{owner}/{repo}/issues/new',
    ),
    shadow: Type.Array(Type.Enum([...LIMITS]), {
      default: [],
      description: `limits that count and log but do not refuse: ${LIMITS.join(', ')}`,
    }),
    shadowRoutes: Type.Array(ShadowRoute, {
      default: [],
      description: 'routes where limits count and log but do not refuse; the most exact one counts',
    }),
    ban: Type.Optional(
      Type.Object(
        {
          refusals: Type.Integer({ minimum: 1, description: 'refusals in a row' }),
          withinSeconds: Type.Integer({ minimum: 1, description: 'a pause of this length ends the row' }),
          banSeconds: Type.Integer({ minimum: 1, description: 'how long nothing is answered but 403' }),
        },
        { ...closed, description: 'for callers who go on while limited; off by default' },
      ),
    ),
    refusal: Type.Object(
      {
        ietfHeaders: Type.Boolean({
          default: false,
          description: 'RateLimit and RateLimit-Policy on every answer, beside the others',
        }),
        shadowHeader: Type.Boolean({
          default: false,
          description:
            'X-RateLimit-Shadowed on an answer that limits in shadow mode would have refused, with their names',
        }),
        status: Type.Enum([403, 429], { default: 403, description: '403 or 429' }),
        documentationUrl: text('documentation_url of refusals, without fragment', '/rate_limit'),
      },
      { ...closed, default: {}, description: 'how refusals and headers look' },
    ),
    identities: Identities,
    credentials: Credentials,
    networks: Type.Array(Network, {
      default: [],
      description:
        'other limits for requests without a credential, by where they come from; the first that fits counts',
    }),
    overrides: byId(Override, 'limits of single callers, by their keys: user:42, ip:192.0.2.1'),
    introspection: Type.Optional(Introspection),
    apiVersions: Type.Object(
      {
        headers: Type.Array(Type.String({ pattern: '^[A-Za-z0-9-]+$' }), {
          default: ['x-platform-api-version', 'x-github-api-version'],
          description: 'names of the header',
        }),
        known: versions('versions that are served; the first one is the default', ['2022-11-28']),
        next: versions('versions in which source_import is gone'),
      },
      { ...closed, default: {}, description: 'API versions' },
    ),
    timeouts: Timeouts,
    sizes: Sizes,
    admin: Type.Object(
      {
        socket: Type.Optional(
          Type.String({
            description: 'path of the admin socket; empty: none. Default: in /run/gantry or XDG_RUNTIME_DIR',
          }),
        ),
        metrics: Type.Optional(Type.String({ description: 'address:port that serves /metrics to Prometheus' })),
        page: Type.Optional(
          Type.String({
            description: 'loopback address:port of a page with who is limited, who asks most, and the last hour',
          }),
        ),
      },
      { ...closed, default: {}, description: 'for the operator' },
    ),
    log: Type.Object(
      {
        level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info', description: 'least level' }),
        requests: Type.Boolean({ default: false, description: 'a line for each request' }),
      },
      { ...closed, default: {}, description: 'JSON lines on standard output' },
    ),
  },
  closed,
);

export type Config = Static<typeof Config>;
export type Override = Static<typeof Override>;
export type IdentitySettings = Config['identities'];
export type IntrospectionSettings = Static<typeof Introspection>;
