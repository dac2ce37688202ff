import { defaultPrimaryLimits, type PrimaryLimits } from '@gantry/limiter/primary.ts';
import { defaultRules, MAX_CPU_SECONDS, MAX_LIMIT, MAX_CONCURRENT } from '@gantry/limiter/rules.ts';
import { CATEGORIES, type Category, type CategoryRule, type LimitRules, type Quota } from '@gantry/limiter/types.ts';

import { callerKey } from '../identity/caller-key.ts';
import type { Config } from './schema.ts';

/** A pause of this length ends a row of refusals. */
const BAN_PAUSE_SECONDS = 60;

/** The settings in the limiter's words. */
export function rulesFrom(config: Config): LimitRules {
  const { concurrent, cpu, windowSeconds: seconds, window: form, ...secondary } = config.secondary;
  const window = { windowSeconds: seconds, window: form };
  const categories = CATEGORIES.map((name): [Category, CategoryRule] => {
    const { limit, windowSeconds, window, anonymousLimit, also } = config.categories[name];
    return [name, { limit, windowSeconds, window, also, ...(anonymousLimit === undefined ? {} : { anonymousLimit }) }];
  });
  return {
    categories: Object.fromEntries(categories) as Record<Category, CategoryRule>,
    concurrent: { ...defaultRules.concurrent, limit: limitOf(concurrent.limit) },
    restPoints: { limit: limitOf(secondary.restPoints.limit), ...window },
    graphqlPoints: { limit: limitOf(secondary.graphqlPoints.limit), ...window },
    cpu: { totalSeconds: limitOf(cpu.totalSeconds), graphqlSeconds: limitOf(cpu.graphqlSeconds), ...window },
    contentPerMinute: { limit: limitOf(secondary.contentPerMinute.limit), ...window },
    contentPerHour: { ...defaultRules.contentPerHour, limit: limitOf(secondary.contentPerHour.limit), window: form },
    shadow: config.shadow,
    costsChange: config.cost.free.length > 0 || config.cost.header !== '',
    ...(config.ban === undefined ? {} : { ban: { ...config.ban, withinSeconds: BAN_PAUSE_SECONDS } }),
  };
}

function limitOf(limit: number | 'off'): number {
  return limit === 'off' ? Infinity : limit;
}

export function primaryLimitsFrom({ limits }: Config): PrimaryLimits {
  return { ...defaultPrimaryLimits, ...limits };
}

/** The rules of callers with overrides. */
export function overriddenRules(config: Config): ReadonlyMap<string, LimitRules> {
  const rules = rulesFrom(config);
  const found = new Map<string, LimitRules>();
  for (const [written, { secondary }] of Object.entries(config.overrides)) {
    const key = callerKey(written);
    if (key !== undefined && secondary !== undefined) found.set(key, timesAsMuch(rules, secondary));
  }
  return found;
}

/** The limits of core of these callers. */
export function overriddenLimits({ overrides }: Config): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [written, { limit }] of Object.entries(overrides)) {
    const key = callerKey(written);
    if (key !== undefined && limit !== undefined) found.set(key, limit);
  }
  return found;
}

function timesAsMuch(rules: LimitRules, secondary: number | 'off'): LimitRules {
  const times = (limit: number, most: number): number =>
    secondary === 'off' ? Infinity : Math.min(most, limit * secondary);
  const quota = ({ limit, ...window }: Quota): Quota => ({ limit: times(limit, MAX_LIMIT), ...window });
  const { concurrent, restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = rules;
  return {
    ...rules,
    concurrent: { ...concurrent, limit: times(concurrent.limit, MAX_CONCURRENT) },
    restPoints: quota(restPoints),
    graphqlPoints: quota(graphqlPoints),
    cpu: {
      ...cpu,
      totalSeconds: times(cpu.totalSeconds, MAX_CPU_SECONDS),
      graphqlSeconds: times(cpu.graphqlSeconds, MAX_CPU_SECONDS),
    },
    contentPerMinute: quota(contentPerMinute),
    contentPerHour: quota(contentPerHour),
  };
}
