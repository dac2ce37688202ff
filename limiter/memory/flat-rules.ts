import { bitsOf } from '../endpoints.ts';
import { CATEGORIES, type LimitRules, type LimitWindow } from '../types.ts';
import { stepOf } from '../window-form.ts';

/** A window as a decision needs it. */
export type Span = Readonly<{
  seconds: number;
  /** Step of a sliding window: seconds that count together. 0: the window is fixed. */
  step: number;
}>;

/** The numbers of the rules as a decision reads them: each at a fixed place, CPU time in microseconds as it is kept. */
export type FlatRules = Readonly<{
  /** By the index of the category. */
  categories: readonly Span[];
  concurrent: number;
  restPoints: number;
  rest: Span;
  graphqlPoints: number;
  graphql: Span;
  cpuMicros: number;
  graphqlMicros: number;
  cpu: Span;
  minuteLimit: number;
  minute: Span;
  hourLimit: number;
  hour: Span;
  /** Bit n is set: `LIMITS[n]` is in shadow mode. */
  shadow: number;
}>;

export function flatten(rules: LimitRules): FlatRules {
  const { restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = rules;
  return {
    categories: CATEGORIES.map((name) => spanOf(rules.categories[name])),
    concurrent: rules.concurrent.limit,
    restPoints: restPoints.limit,
    rest: spanOf(restPoints),
    graphqlPoints: graphqlPoints.limit,
    graphql: spanOf(graphqlPoints),
    cpuMicros: cpu.totalSeconds * 1e6,
    graphqlMicros: cpu.graphqlSeconds * 1e6,
    cpu: spanOf(cpu),
    minuteLimit: contentPerMinute.limit,
    minute: spanOf(contentPerMinute),
    hourLimit: contentPerHour.limit,
    hour: spanOf(contentPerHour),
    shadow: bitsOf(rules.shadow),
  };
}

function spanOf(window: LimitWindow): Span {
  return { seconds: window.windowSeconds, step: stepOf(window) };
}
