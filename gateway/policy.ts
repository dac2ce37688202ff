import { isDeepStrictEqual } from 'node:util';

import type { RateLimiter } from '@gantry/limiter/limiter.ts';
import type { RefusalStyle } from '@gantry/limiter/present.ts';
import { callerFrom, type PrimaryLimits } from '@gantry/limiter/primary.ts';
import type { Caller } from '@gantry/limiter/types.ts';

import { overriddenLimits, primaryLimitsFrom } from './config/rules.ts';
import type { Config } from './config/schema.ts';
import { TrustedProxies } from './identity/address.ts';
import { callerKey } from './identity/caller-key.ts';
import { ConfiguredIdentities } from './identity/configured-identities.ts';
import { CredentialPlaces } from './identity/credential-places.ts';
import { Introspection } from './identity/introspection.ts';
import { Networks } from './identity/networks.ts';
import { AnswerCost } from './proxy/headers/answer-cost.ts';
import { GraphqlCost } from './routes/graphql-cost.ts';
import { Routes } from './routes/routes.ts';
import { ApiVersions } from './versions.ts';

/** A configuration compiled for requests: built at the start and at each reload, and immutable. */
export type Policy = Readonly<{
  config: Config;
  primary: PrimaryLimits;
  routes: Routes;
  known: ConfiguredIdentities;
  introspection: Introspection | undefined;
  credentials: CredentialPlaces;
  networks: Networks;
  trusted: TrustedProxies;
  refusal: RefusalStyle;
  versions: ApiVersions;
  graphqlCost: GraphqlCost;
  cost: AnswerCost;
  /** Limits of core of single callers. */
  overrides: ReadonlyMap<string, number>;
  /** Keys of callers without limits. */
  exempt: ReadonlySet<string>;
  /** Every category is off. */
  limitsNothing: boolean;
}>;

/** `before`: the policy that is replaced; its cache of tokens stays while `introspection` and the primary limits do. */
export function buildPolicy(config: Config, limiter: Pick<RateLimiter, 'endpoint'>, before?: Policy): Policy {
  const primary = primaryLimitsFrom(config);
  return {
    config,
    primary,
    routes: new Routes(config, limiter),
    known: new ConfiguredIdentities(config.identities, primary),
    introspection: introspectionFor(config, primary, before),
    credentials: new CredentialPlaces(config.credentials),
    networks: new Networks(config.networks),
    trusted: new TrustedProxies(config.trustProxy, config.clientAddress),
    refusal: config.refusal,
    versions: new ApiVersions(config.apiVersions),
    graphqlCost: new GraphqlCost(config.secondary.graphqlCost),
    cost: new AnswerCost(config.cost),
    overrides: overriddenLimits(config),
    exempt: new Set(config.exempt.callers.flatMap((written) => callerKey(written) ?? [])),
    limitsNothing: Object.values(config.categories).every(({ limit }) => limit === 'off'),
  };
}

function introspectionFor(config: Config, primary: PrimaryLimits, before?: Policy): Introspection | undefined {
  if (config.introspection === undefined) return undefined;
  const same =
    isDeepStrictEqual(before?.config.introspection, config.introspection) &&
    isDeepStrictEqual(before?.primary, primary);
  return (same ? before?.introspection : undefined) ?? new Introspection(config.introspection, primary);
}

/** The caller of an address, for requests without a credential or with a wrong one. */
export function anonymousCaller(policy: Policy, address: string): Caller {
  return withOverride(
    policy,
    policy.networks.placed(callerFrom({ kind: 'anonymous', address }, policy.primary), address),
  );
}

/** Returns the caller with the limit that `overrides` gives it. */
export function withOverride({ overrides }: Policy, caller: Caller): Caller {
  if (overrides.size === 0) return caller;
  const limit = overrides.get(caller.key);
  return limit === undefined ? caller : { ...caller, limit };
}
