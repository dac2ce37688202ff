import { type PrimaryLimits } from '@gantry/limiter/primary.ts';
import { CATEGORIES, type Category, type CategoryRule, type LimitRules } from '@gantry/limiter/types.ts';

import type { Config } from './schema.ts';

/** The settings in the limiter's words. */
export function rulesFrom(config: Config): LimitRules {
  const { concurrent, restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = config.secondary;
  const categories = CATEGORIES.map((name): [Category, CategoryRule] => {
    const { limit, windowSeconds, anonymousLimit } = config.categories[name];
    return [name, { limit, windowSeconds, ...(anonymousLimit === undefined ? {} : { anonymousLimit }) }];
  });
  return {
    categories: Object.fromEntries(categories) as Record<Category, CategoryRule>,
    concurrent,
    restPoints,
    graphqlPoints,
    cpu,
    contentPerMinute,
    contentPerHour,
    shadow: config.shadow,
    ...(config.ban === undefined ? {} : { ban: config.ban }),
  };
}

export function primaryLimitsFrom({ limits }: Config): PrimaryLimits {
  return limits;
}
