import { MAX_CPU_SECONDS, MAX_LIMIT, MAX_CONCURRENT, MAX_WINDOW_SECONDS } from '@gantry/limiter/rules.ts';
import { LIMITS } from '@gantry/limiter/types.ts';
import { Type } from 'typebox';

import { closed, count, orOff, patterned, quota, windowForm, windowOf } from './values.ts';

export const Limits = Type.Object(
  {
    anonymous: count('requests without a credential, per address', 60),
    user: count('a user, whatever the token', 5000),
  },
  {
    ...closed,
    default: {},
    description: 'primary limits of the core category; other kinds of callers have those of the specification',
  },
);

export const CategorySettings = Type.Object(
  {
    limit: Type.Union([Type.Integer({ minimum: 0, maximum: MAX_LIMIT }), Type.Literal('caller'), Type.Literal('off')], {
      default: 'caller',
      description: "a number, caller (the caller's core limit) or off (counts in core; core itself: never refuses)",
    }),
    windowSeconds: windowOf(3600),
    window: windowForm,
    anonymousLimit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_LIMIT,
        description: 'another limit for callers without a credential',
      }),
    ),
    also: Type.Array(
      Type.Object(
        {
          limit: Type.Integer({ minimum: 0, maximum: MAX_LIMIT, description: 'requests of a caller in this window' }),
          windowSeconds: Type.Integer({ minimum: 1, maximum: MAX_WINDOW_SECONDS, description: 'its length' }),
        },
        closed,
      ),
      { default: [], maxItems: 4, description: 'further windows that must have room too; headers show the tightest' },
    ),
    routes: Type.Optional(
      Type.Array(Type.String(), { description: 'method and path templates; replaces the built-in ones' }),
    ),
  },
  { ...closed, default: {} },
);

export const Cost = Type.Object(
  {
    free: Type.Array(
      Type.Union([
        Type.Integer({ minimum: 200, maximum: 599 }),
        Type.Literal('2xx'),
        Type.Literal('3xx'),
        Type.Literal('4xx'),
        Type.Literal('5xx'),
      ]),
      { default: [], description: 'statuses of answers that cost nothing: 304, 5xx' },
    ),
    header: patterned('^[A-Za-z0-9-]{0,64}$', 'the name of a header', {
      default: '',
      description: 'header of the upstream with the cost of a request, 0 to 1000; clients do not see it',
    }),
  },
  { ...closed, default: {}, description: 'what a request costs of the primary limit by its answer; default: 1' },
);

export const Secondary = Type.Object(
  {
    concurrent: Type.Object(
      { limit: orOff(MAX_CONCURRENT, 'requests of a caller under way at once', 100) },
      { ...closed, default: {}, description: 'REST and GraphQL together' },
    ),
    restPoints: quota('points for each REST endpoint', 900),
    graphqlPoints: quota('points for GraphQL', 2000),
    cpu: Type.Object(
      {
        totalSeconds: orOff(MAX_CPU_SECONDS, "seconds of the upstream's time in a window", 90),
        graphqlSeconds: orOff(MAX_CPU_SECONDS, 'of these for GraphQL', 60),
      },
      { ...closed, default: {}, description: 'CPU time, estimated by the time of response' },
    ),
    contentPerMinute: quota('requests that create content', 80),
    contentPerHour: Type.Object(
      { limit: orOff(MAX_LIMIT, 'how much fits into an hour', 500) },
      { ...closed, default: {}, description: 'requests that create content' },
    ),
    windowSeconds: windowOf(60, 'length of the windows of restPoints, graphqlPoints, cpu and contentPerMinute'),
    window: windowForm,
    graphqlCost: Type.Enum(['request', 'operation'], {
      default: 'request',
      description:
        'what the points of GraphQL are for: a request, or each operation in it, with batches, aliases and the messages of a WebSocket',
    }),
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

export const ShadowRoute = Type.Object(
  {
    route: Type.String({ description: 'method and path template' }),
    limits: Type.Array(Type.Enum([...LIMITS]), { default: [...LIMITS], description: 'which limits; default: all' }),
  },
  { ...closed, default: {} },
);
