import { Type } from 'typebox';

import { closed, count, patterned } from './values.ts';

export const Listen = Type.String({ minLength: 1 });

export const Upstream = Type.String({ minLength: 1 });

export const Tls = Type.Object(
  {
    certFile: Type.String({ description: 'certificate in PEM, with those between it and the root' }),
    keyFile: Type.String({ description: 'its key in PEM' }),
  },
  { ...closed, description: 'the certificate of addresses with tls:, read again with the settings' },
);

export const Decisions = Type.Object(
  {
    listen: Type.Optional(
      Type.String({ minLength: 1, description: 'address:port or unix:/path that answers at /decide' }),
    ),
    envoy: Type.Optional(
      Type.String({ minLength: 1, description: "address:port of Envoy's rate limit service (gRPC)" }),
    ),
  },
  { ...closed, description: 'for proxies of trustProxy that ask about requests and forward these themselves' },
);

export const ClientAddress = Type.Object(
  {
    header: patterned('^[A-Za-z0-9-]{1,64}$', 'the name of a header', {
      default: 'X-Forwarded-For',
      description: 'X-Forwarded-For, or a header with one address, such as X-Real-IP or CF-Connecting-IP',
    }),
    hops: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 32,
        description:
          'the client is this entry of X-Forwarded-For, counted from its end; default: the last one that is none of trustProxy',
      }),
    ),
    proxyProtocol: Type.Boolean({
      default: false,
      description: 'their connections begin with the PROXY protocol, version 1 or 2',
    }),
  },
  { ...closed, default: {}, description: 'how the proxies of trustProxy name the client' },
);

export const Timeouts = Type.Object(
  {
    requestMs: count('a client has sent its whole request', 300_000, 100),
    idleMs: count('nothing has moved on a connection of a client', 120_000, 100),
    upstreamHeadersMs: count('the upstream begins its answer, and then sends the next piece of it', 60_000, 1),
    drainMs: count('requests under way may end after SIGTERM', 30_000),
  },
  { ...closed, default: {}, description: 'how long anything may take' },
);

export const Sizes = Type.Object(
  {
    connections: count(
      'open connections of clients, in each worker; a quarter of them, at least 32, from one address',
      10_000,
      1,
    ),
    upstreamConnections: count('open connections to the upstream, in each worker', 1024, 1),
  },
  { ...closed, default: {}, description: 'how large anything may be' },
);
