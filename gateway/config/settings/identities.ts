import { MAX_LIMIT } from '@gantry/limiter/rules.ts';
import { type Static, Type } from 'typebox';

import { byId, closed, count, entry, list, patterned, upTo } from './values.ts';

const sha256 = (what: string) =>
  patterned('^[0-9a-fA-F]{64}$', '64 hexadecimal digits', { description: `SHA-256 of ${what}, in hexadecimal` });
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
    org: Type.Optional(Type.String({ description: 'id of the organization it is installed on' })),
    repositories: count('how many repositories it has', 0),
  },
  entry,
);
const Repository = Type.Object(
  {
    org: Type.Optional(Type.String({ description: 'id of the organization that owns it' })),
  },
  entry,
);

const Token = Type.Object(
  {
    sha256: sha256('the token'),
    user: Type.Optional(Type.String({ description: 'id of the user that owns the token' })),
    app: Type.Optional(Type.String({ description: 'beside user: id of the app that acts for the user' })),
    installation: Type.Optional(Type.String({ description: 'id of the app installation that owns the token' })),
    repository: Type.Optional(Type.String({ description: 'id of the repository whose workflow owns the token' })),
  },
  closed,
);

export const Identities = Type.Object(
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

export const Credentials = Type.Object(
  {
    headers: list('headers that hold a token: PRIVATE-TOKEN'),
    queryParameters: list('parameters of the query that hold a token: access_token, token'),
    cookies: list('cookies that hold a session of the web interface; one that nobody knows counts on its address'),
  },
  { ...closed, default: {}, description: 'where else than in Authorization a token may stand' },
);

export const Network = Type.Object(
  {
    name: patterned('^[A-Za-z0-9._-]{1,100}$', 'a name of letters, digits, dots, _ and -', {
      description: 'names the network: network:NAME',
    }),
    ranges: list('addresses and CIDR ranges'),
    file: Type.Optional(Type.String({ description: 'more of them, one in a line; read again with the settings' })),
    limit: upTo(MAX_LIMIT, 'requests in the window of core, per address', 60),
    together: Type.Boolean({ default: false, description: 'all of the network counts as one caller' }),
  },
  { ...closed, default: {} },
);

export const Override = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_LIMIT, description: 'requests in the window of core' }),
    ),
    secondary: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: 1000 }), Type.Literal('off')], {
        description: 'so many times what others may of each secondary limit, or off',
      }),
    ),
  },
  entry,
);

export const Introspection = Type.Object(
  {
    url: patterned('^https?://', 'http://… or https://…', { description: 'where to ask' }),
    authorizationFile: Type.Optional(
      Type.String({
        description:
          "file with the Authorization header of the gateway, which then asks by POST token=… as in RFC 7662; default: GET with the caller's own credential",
      }),
    ),
    timeoutMs: count('the longest wait', 2000, 1),
    cacheSeconds: count('how long a known token is not asked again; an unknown one at most 10', 60, 1),
  },
  { ...closed, description: 'a forge that says whose token it is, for tokens that are not listed' },
);

export type IdentitySettings = Static<typeof Identities>;
export type IntrospectionSettings = Static<typeof Introspection>;
export type Override = Static<typeof Override>;
