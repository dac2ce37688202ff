import { CATEGORIES, LIMITS } from '@gantry/limiter/types.ts';
import { type Static, Type } from 'typebox';

import { ClientAddress, Decisions, Listen, Sizes, Timeouts, Tls, Upstream } from './settings/connections.ts';
import { Credentials, Identities, Introspection, Network, Override } from './settings/identities.ts';
import { CategorySettings, Cost, Limits, Secondary, ShadowRoute } from './settings/limits.ts';
import { Store } from './settings/store.ts';
import { byId, closed, list, patterned, versions } from './settings/values.ts';

/** Every setting of the gateway; the keys are those of the configuration file. */
export const Config = Type.Object(
  {
    listen: Type.Union([Listen, Type.Array(Listen, { minItems: 1 })], {
      default: '127.0.0.1:8080',
      description: 'address:port, tls:address:port or unix:/path, or a list of them',
    }),
    upstream: Type.Union([Upstream, Type.Array(Upstream, { minItems: 1, maxItems: 100 })], {
      description:
        'the server behind: http://host:port, https://host:port or unix:/path, with a prefix of all paths (/api, for unix :/api); or a list of them',
    }),
    upstreamHealth: Type.Optional(
      patterned('^/[^?#]*$', 'a path such as /healthz', {
        description: 'path that is asked every 2 s; a server that does not answer below 400 gets no requests',
      }),
    ),
    basePath: patterned('^(/[^/?#%]+)*$', 'a path such as /api/v1, without a slash at its end', {
      default: '',
      description: 'path of the API on the upstream, such as /api/v1',
    }),
    outsideBasePath: Type.Enum(['limit', 'pass'], {
      default: 'limit',
      description: 'requests outside basePath: count them as core, or pass them without limits',
    }),
    workers: Type.Integer({ default: 1, minimum: 1, maximum: 256, description: 'processes that share the port' }),
    tls: Type.Optional(Tls),
    store: Store,
    cors: Type.Enum(['pass', 'own', 'off'], {
      default: 'pass',
      description:
        "browsers: preflights spend no quota and are the upstream's to answer (pass), or the gateway lets pages of all origins read and send (own); off: like other requests",
    }),
    trustProxy: list('addresses or CIDR ranges of proxies that are believed'),
    clientAddress: ClientAddress,
    decisions: Type.Optional(Decisions),
    limits: Limits,
    categories: Type.Object(
      Object.fromEntries(CATEGORIES.map((name) => [name, CategorySettings])) as {
        [Name in (typeof CATEGORIES)[number]]: typeof CategorySettings;
      },
      { ...closed, default: {}, description: 'the categories of GET /rate_limit' },
    ),
    cost: Cost,
    exempt: Type.Object(
      {
        routes: list('method and path templates: GET /healthz'),
        callers: list('keys of callers: user:42, ip:192.0.2.1'),
      },
      { ...closed, default: {}, description: 'passes without limits, and counts nowhere' },
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
          refusals: Type.Integer({ minimum: 1, description: 'refusals in a row, without a pause of a minute' }),
          banSeconds: Type.Integer({ minimum: 1, description: 'how long nothing is answered but 403' }),
        },
        { ...closed, description: 'for callers who go on while limited; off by default' },
      ),
    ),
    refusal: Type.Object(
      {
        status: Type.Enum([403, 429], { default: 403, description: '403 or 429' }),
        retryAfter: Type.Boolean({
          default: false,
          description: 'Retry-After on refusals of primary limits too, which some clients then take for secondary ones',
        }),
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
