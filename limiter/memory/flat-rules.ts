import { CATEGORIES, type LimitRules, LIMITS } from '../types.ts';

/** The numbers of the rules as a decision reads them: each at a fixed place, CPU time in microseconds as it is kept. */
export type FlatRules = Readonly<{
  /** By the index of the category. */
  categorySeconds: readonly number[];
  concurrent: number;
  restPoints: number;
  restSeconds: number;
  graphqlPoints: number;
  graphqlSeconds: number;
  cpuMicros: number;
  graphqlMicros: number;
  cpuSeconds: number;
  minuteLimit: number;
  minuteSeconds: number;
  hourLimit: number;
  hourSeconds: number;
  /** Bit n is set: `LIMITS[n]` is in shadow mode. */
  shadow: number;
}>;

export function flatten(rules: LimitRules): FlatRules {
  const { restPoints, graphqlPoints, cpu, contentPerMinute, contentPerHour } = rules;
  return {
    categorySeconds: CATEGORIES.map((name) => rules.categories[name].windowSeconds),
    concurrent: rules.concurrent.limit,
    restPoints: restPoints.limit,
    restSeconds: restPoints.windowSeconds,
    graphqlPoints: graphqlPoints.limit,
    graphqlSeconds: graphqlPoints.windowSeconds,
    cpuMicros: cpu.totalSeconds * 1e6,
    graphqlMicros: cpu.graphqlSeconds * 1e6,
    cpuSeconds: cpu.windowSeconds,
    minuteLimit: contentPerMinute.limit,
    minuteSeconds: contentPerMinute.windowSeconds,
    hourLimit: contentPerHour.limit,
    hourSeconds: contentPerHour.windowSeconds,
    shadow: rules.shadow.reduce((bits, name) => bits | (1 << LIMITS.indexOf(name)), 0),
  };
}
