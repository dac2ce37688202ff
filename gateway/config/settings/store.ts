import { Type } from 'typebox';

import { closed, count, text } from './values.ts';

export const Store = Type.Object(
  {
    kind: Type.Enum(['memory', 'sqlite', 'redis'], { default: 'memory', description: 'memory, sqlite or redis' }),
    path: Type.Optional(Type.String({ minLength: 1, description: 'sqlite: the file' })),
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
    tls: Type.Optional(
      Type.Object(
        {
          caFile: Type.Optional(
            Type.String({ description: "certificates in PEM of the authorities that are trusted; default: Node's" }),
          ),
          certFile: Type.Optional(Type.String({ description: "the gateway's certificate in PEM" })),
          keyFile: Type.Optional(Type.String({ description: 'its key in PEM' })),
        },
        { ...closed, description: 'redis: certificates for rediss://, read at the start' },
      ),
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
