import { CATEGORIES, type Category, type CategoryRule, type LimitRules, LIMITS, type LimitWindow } from './types.ts';
import { WINDOW_FORMS } from './window-form.ts';

const HOUR = 3600;
const MINUTE = 60;

/** The longest window that is accepted: counts and times of a window are kept in 32 bits. */
export const MAX_WINDOW_SECONDS = 366 * 24 * HOUR;
export const MAX_LIMIT = 1_000_000_000;
/** CPU time is kept in microseconds. */
export const MAX_CPU_SECONDS = 2000;
export const MAX_CONCURRENT = 60_000;

/** A problem, and its place in the rules. */
export type RuleProblem = Readonly<{ path: readonly string[]; message: string }>;

const ownWindow: CategoryRule = { limit: 'caller', windowSeconds: HOUR };

/**
 * The numbers of the specification. It gives none for the categories other than core, but says that they have limits of
 * their own: each is a window with the caller's primary limit, until somebody configures another.
 */
export const defaultRules: LimitRules = {
  categories: {
    core: ownWindow,
    search: ownWindow,
    code_search: ownWindow,
    graphql: ownWindow,
    integration_manifest: ownWindow,
    dependency_snapshots: ownWindow,
    code_scanning_upload: ownWindow,
    actions_runner_registration: ownWindow,
    source_import: ownWindow,
    scim: ownWindow,
  },
  concurrent: { limit: 100, retrySeconds: 1 },
  restPoints: { limit: 900, windowSeconds: MINUTE },
  graphqlPoints: { limit: 2000, windowSeconds: MINUTE },
  cpu: { totalSeconds: 90, graphqlSeconds: 60, windowSeconds: MINUTE },
  contentPerMinute: { limit: 80, windowSeconds: MINUTE },
  contentPerHour: { limit: 500, windowSeconds: HOUR },
  shadow: [],
};

/** Changes to the defaults, each group by itself. */
export type RuleChanges = Partial<Omit<LimitRules, 'categories'>> & {
  categories?: Partial<Record<Category, CategoryRule>>;
};

/** The default rules with `changes`, checked. Throws a RangeError that names everything that is wrong. */
export function limitRules(changes: RuleChanges = {}): LimitRules {
  const rules: LimitRules = {
    ...defaultRules,
    ...changes,
    categories: { ...defaultRules.categories, ...changes.categories },
  };
  const problems = problemsOf(rules);
  if (problems.length > 0) {
    const told = problems.map(({ path, message }) => `${path.join('.')} ${message}`);
    throw new RangeError(`limits: ${told.join('; ')}`);
  }
  return rules;
}

/** Lists the problems of the rules, with the place of each, in words for the person who wrote them. */
export function problemsOf(rules: LimitRules): RuleProblem[] {
  const problems: RuleProblem[] = [];
  const check = (path: readonly string[], value: number, least: number, most: number): void => {
    if (Number.isInteger(value) && value >= least && value <= most) return;
    problems.push({ path, message: `must be a whole number from ${least} to ${most}, not ${value}` });
  };
  const checkLimit = (path: readonly string[], limit: number, most = MAX_LIMIT): void => {
    if (limit !== Infinity) check(path, limit, 0, most);
  };
  const checkWindow = (path: readonly string[], { windowSeconds, window = 'fixed' }: LimitWindow): void => {
    check([...path, 'windowSeconds'], windowSeconds, 1, MAX_WINDOW_SECONDS);
    if (WINDOW_FORMS.includes(window)) return;
    problems.push({
      path: [...path, 'window'],
      message: `must be ${WINDOW_FORMS.join(' or ')}, not ${window}`,
    });
  };
  for (const category of CATEGORIES) {
    const { limit, anonymousLimit, also = [], windowSeconds } = rules.categories[category];
    const path = ['categories', category];
    if (typeof limit === 'number') check([...path, 'limit'], limit, 0, MAX_LIMIT);
    if (anonymousLimit !== undefined) check([...path, 'anonymousLimit'], anonymousLimit, 0, MAX_LIMIT);
    if (anonymousLimit !== undefined && limit === 'off') {
      problems.push({ path: [...path, 'anonymousLimit'], message: 'has no effect in a category that is off' });
    }
    checkWindow(path, rules.categories[category]);
    for (const [index, further] of also.entries()) {
      const place = [...path, 'also', String(index)];
      check([...place, 'limit'], further.limit, 0, MAX_LIMIT);
      check([...place, 'windowSeconds'], further.windowSeconds, 1, MAX_WINDOW_SECONDS);
      const others = [windowSeconds, ...also.slice(0, index).map((other) => other.windowSeconds)];
      if (others.includes(further.windowSeconds)) {
        problems.push({ path: [...place, 'windowSeconds'], message: 'another window of the category is as long' });
      }
    }
    if (also.length > 0 && limit === 'off') {
      problems.push({ path: [...path, 'also'], message: 'has no effect in a category that is off' });
    }
  }
  checkLimit(['concurrent', 'limit'], rules.concurrent.limit, MAX_CONCURRENT);
  check(['concurrent', 'retrySeconds'], rules.concurrent.retrySeconds, 1, MAX_WINDOW_SECONDS);
  for (const name of ['restPoints', 'graphqlPoints', 'contentPerMinute', 'contentPerHour'] as const) {
    checkLimit([name, 'limit'], rules[name].limit);
    checkWindow([name], rules[name]);
  }
  checkLimit(['cpu', 'totalSeconds'], rules.cpu.totalSeconds, MAX_CPU_SECONDS);
  checkLimit(['cpu', 'graphqlSeconds'], rules.cpu.graphqlSeconds, MAX_CPU_SECONDS);
  checkWindow(['cpu'], rules.cpu);
  for (const name of rules.shadow) {
    if (LIMITS.includes(name)) continue;
    problems.push({ path: ['shadow'], message: `there is no limit ${name}; there are ${LIMITS.join(', ')}` });
  }
  if (rules.ban !== undefined) {
    check(['ban', 'refusals'], rules.ban.refusals, 1, MAX_LIMIT);
    check(['ban', 'withinSeconds'], rules.ban.withinSeconds, 1, MAX_WINDOW_SECONDS);
    check(['ban', 'banSeconds'], rules.ban.banSeconds, 1, MAX_WINDOW_SECONDS);
  }
  return problems;
}
