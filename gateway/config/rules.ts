import { type PrimaryLimits } from '@gantry/limiter/primary.ts';
import { CATEGORIES, type Category, type CategoryRule, type LimitRules, type Quota } from '@gantry/limiter/types.ts';

import type { Config } from './schema.ts';

/** The settings in the limiter's words. */
export function rulesFrom(config: Config): LimitRules {
  const { concurrent, cpu, ...secondary } = config.secondary;
  const categories = CATEGORIES.map((name): [Category, CategoryRule] => {
    const { limit, windowSeconds, anonymousLimit } = config.categories[name];
    return [name, { limit, windowSeconds, ...(anonymousLimit === undefined ? {} : { anonymousLimit }) }];
  });
  return {
    categories: Object.fromEntries(categories) as Record<Category, CategoryRule>,
    concurrent: { ...concurrent, limit: limitOf(concurrent.limit) },
    restPoints: quotaOf(secondary.restPoints),
    graphqlPoints: quotaOf(secondary.graphqlPoints),
    cpu: { ...cpu, totalSeconds: limitOf(cpu.totalSeconds), graphqlSeconds: limitOf(cpu.graphqlSeconds) },
    contentPerMinute: quotaOf(secondary.contentPerMinute),
    contentPerHour: quotaOf(secondary.contentPerHour),
    shadow: config.shadow,
    ...(config.ban === undefined ? {} : { ban: config.ban }),
  };
}

function limitOf(limit: number | 'off'): number {
  return limit === 'off' ? Infinity : limit;
}

function quotaOf({ limit, windowSeconds }: Config['secondary']['restPoints']): Quota {
  return { limit: limitOf(limit), windowSeconds };
}

export function primaryLimitsFrom({ limits }: Config): PrimaryLimits {
  return limits;
}
