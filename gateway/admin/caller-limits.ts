import { type CallerState, CATEGORIES, type LimitRules } from '@gantry/limiter/types.ts';

import { overriddenLimits, overriddenRules, rulesFrom } from '../config/rules.ts';
import type { Config } from '../config/schema.ts';
import { KnownIdentities } from '../identity/known.ts';

/** One limit of a caller. Time is in seconds; a limit of null is none. */
export type LimitLine = Readonly<{
  name: string;
  limit: number | null;
  used: number;
  left: number | null;
  reset: number;
}>;

/** Everything that a caller may, and what is left of it. */
export function callerLimits(config: Config, { key, underWay, windows }: CallerState): LimitLine[] {
  const rules = overriddenRules(config).get(key) ?? rulesFrom(config);
  const open = new Map(windows.map((window) => [window.name, window]));
  const line = (name: string, limit: number, scale = 1): LimitLine => {
    const { used, reset } = open.get(name) ?? { used: 0, reset: 0 };
    return { name, ...leftOf(limit, used / scale), reset };
  };
  const { cpu, contentPerMinute, contentPerHour } = rules;
  return [
    ...CATEGORIES.flatMap((name) => {
      const limit = categoryLimit(config, rules, key, name);
      return limit === undefined ? [] : [line(name, limit)];
    }),
    { name: 'concurrent', ...leftOf(rules.concurrent.limit, underWay), reset: 0 },
    line('cpu', cpu.totalSeconds, 1000),
    line('graphql-cpu', cpu.graphqlSeconds, 1000),
    line('content-minute', contentPerMinute.limit),
    line('content-hour', contentPerHour.limit),
    ...windows
      .filter(({ name }) => name.startsWith('points '))
      .map(({ name }) => line(name, (name === 'points GraphQL' ? rules.graphqlPoints : rules.restPoints).limit)),
  ];
}

function leftOf(limit: number, used: number): Pick<LimitLine, 'limit' | 'used' | 'left'> {
  return limit === Infinity ? { limit: null, used, left: null } : { limit, used, left: Math.max(0, limit - used) };
}

/** Undefined: the category is off. */
function categoryLimit(
  config: Config,
  rules: LimitRules,
  key: string,
  name: (typeof CATEGORIES)[number],
): number | undefined {
  const { limit, anonymousLimit } = rules.categories[name];
  if (limit === 'off') return undefined;
  if (key.startsWith('ip:') && anonymousLimit !== undefined) return anonymousLimit;
  return limit === 'caller' ? coreLimit(config, key) : limit;
}

/** For a caller that only the forge knows, the usual limit of its kind. */
function coreLimit(config: Config, key: string): number {
  const { limits, identities, networks } = config;
  const known = overriddenLimits(config).get(key) ?? new KnownIdentities(identities, limits).limitOf(key);
  if (known !== undefined) return known;
  const network = networks.find(({ name }) => key === `network:${name}`);
  if (network !== undefined) return network.limit;
  if (key.startsWith('ip:')) return limits.anonymous;
  if (key.startsWith('installation:')) return limits.installation.least;
  if (key.startsWith('app:')) return limits.oauthClient;
  return key.startsWith('workflow:') ? limits.workflow : limits.user;
}
