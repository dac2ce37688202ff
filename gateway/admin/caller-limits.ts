import { furtherWindowName } from '@gantry/limiter/endpoints.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import { type CallerState, CATEGORIES, type LimitRules } from '@gantry/limiter/types.ts';

import { overriddenLimits, overriddenRules, primaryLimitsFrom, rulesFrom } from '../config/rules.ts';
import type { Config } from '../config/schema.ts';
import { addressOf } from '../identity/caller-key.ts';
import { Networks } from '../identity/networks.ts';

/** One limit of a caller. Time is in seconds; a limit of null is none. */
export type LimitLine = Readonly<{
  name: string;
  limit: number | null;
  used: number;
  left: number | null;
  reset: number;
}>;

/**
 * Everything that a caller may, and what is left of it. `known`: the primary limits of its credentials. A user whose
 * apps differ has a line for each.
 */
export function callerLimits(
  config: Config,
  { key, underWay, windows }: CallerState,
  known: readonly number[],
): LimitLine[] {
  const rules = overriddenRules(config).get(key) ?? rulesFrom(config);
  const open = new Map(windows.map((window) => [window.name, window]));
  const line = (name: string, limit: number, scale = 1): LimitLine => {
    const { used, reset } = open.get(name) ?? { used: 0, reset: 0 };
    return { name, ...leftOf(limit, used / scale), reset };
  };
  const { cpu, contentPerMinute, contentPerHour } = rules;
  const core = coreLimits(config, key, known);
  return [
    ...CATEGORIES.flatMap((name) => [
      ...categoryLimits(rules, key, name, core).map((limit) => line(name, limit)),
      ...(rules.categories[name].also ?? []).map(({ limit, windowSeconds }) =>
        line(furtherWindowName(name, windowSeconds), limit),
      ),
    ]),
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

/** Limits of a category; none where it is off. */
function categoryLimits(
  rules: LimitRules,
  key: string,
  name: (typeof CATEGORIES)[number],
  core: readonly number[],
): readonly number[] {
  const { limit, anonymousLimit } = rules.categories[name];
  if (limit === 'off') return [];
  if (key.startsWith('ip:') && anonymousLimit !== undefined) return [anonymousLimit];
  return limit === 'caller' ? core : [limit];
}

/** For a caller that only the forge knows, and that was not here lately, the usual limit of its kind. */
export function coreLimits(config: Config, key: string, known: readonly number[]): readonly number[] {
  const limits = primaryLimitsFrom(config);
  const overridden = overriddenLimits(config).get(key);
  if (overridden !== undefined) return [overridden];
  if (known.length > 0) return [...new Set(known)].toSorted((one, other) => one - other);
  const network = config.networks.find(({ name }) => key === `network:${name}`);
  if (network !== undefined) return [network.limit];
  if (key.startsWith('ip:')) return [addressLimit(config, key)];
  if (key.startsWith('installation:')) return [limits.installation.least];
  if (key.startsWith('app:')) return [limits.oauthClient];
  return [key.startsWith('workflow:') ? limits.workflow : limits.user];
}

function addressLimit(config: Config, key: string): number {
  const address = addressOf(key);
  return new Networks(config.networks).placed(
    callerFrom({ kind: 'anonymous', address }, primaryLimitsFrom(config)),
    address,
  ).limit;
}
