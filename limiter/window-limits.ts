import { bitsOf, CORE, CPU, GRAPHQL_CPU, HOUR, MINUTE } from './endpoints.ts';
import { type Endpoint, type LimitName, type LimitRules, LIMITS, type LimitWindow } from './types.ts';
import { stepOf } from './window-form.ts';

/** A limit on what is spent in a window. */
export type WindowLimit = Readonly<{
  /** Id of the window in a caller's record. */
  id: number;
  seconds: number;
  /** Seconds of a step; 0: the window is fixed. */
  step: number;
  /** Seconds until the end of such a window at most. */
  longest: number;
  /** Index among the windows that all endpoints share; -1: it is none of them. */
  shared: number;
  /** Bit of the limit's name in a set of `LIMITS`. */
  bit: number;
  limit: number;
}>;

/** The limits of an endpoint under some rules. */
export type EndpointLimits = Readonly<{
  endpoint: Endpoint;
  rules: LimitRules;
  /** Window of the primary limit; the number is the caller's. */
  quota: WindowLimit;
  /** Further windows of the category. */
  further: readonly WindowLimit[];
  points: WindowLimit;
  cpu: WindowLimit;
  graphqlCpu: WindowLimit;
  /** Those that count content: none for other endpoints. */
  content: readonly WindowLimit[];
  /** Bits of the limits in shadow mode. */
  shadow: number;
}>;

/** Ids of windows in a store: of the endpoint's own ones, and of further ones of its category. */
type WindowIds = Readonly<{ own: number; further: (windowSeconds: number) => number }>;

export function limitsOf(endpoint: Endpoint, rules: LimitRules, { own: id, further }: WindowIds): EndpointLimits {
  const { graphql, category, categoryIndex } = endpoint;
  const { window = 'fixed', also = [] } = rules.categories[category];
  const { cpu, contentPerMinute: minute, contentPerHour: hour } = rules;
  const points = graphql ? rules.graphqlPoints : rules.restPoints;
  const own = [
    windowLimit('content-minute', id + 1, minute, endpoint.contentPerMinute),
    windowLimit('content-hour', id + 2, hour, endpoint.contentPerHour),
  ].filter(({ limit }) => limit !== Infinity);
  return {
    endpoint,
    rules,
    quota: windowLimit('primary', categoryIndex, rules.categories[category], 0),
    further: also.map(({ limit, windowSeconds }) =>
      windowLimit('primary', further(windowSeconds), { windowSeconds, window }, limit),
    ),
    points: windowLimit('points', id, points, points.limit),
    cpu: windowLimit('cpu', CPU, cpu, cpu.totalSeconds * 1e6),
    graphqlCpu: windowLimit('graphql-cpu', GRAPHQL_CPU, cpu, cpu.graphqlSeconds * 1e6),
    content: endpoint.content ? [...contentLimits(rules), ...own] : [],
    shadow: bitsOf(rules.shadow) | endpoint.shadow,
  };
}

/** Index of a window among those that all endpoints share; -1: it is none of them. */
export function sharedIndex(id: number): number {
  return [CORE, MINUTE, HOUR, CPU, GRAPHQL_CPU].indexOf(id);
}

/** The limits of content that all endpoints share. */
export function contentLimits({ contentPerMinute: minute, contentPerHour: hour }: LimitRules): WindowLimit[] {
  return [
    windowLimit('content-minute', MINUTE, minute, minute.limit),
    windowLimit('content-hour', HOUR, hour, hour.limit),
  ];
}

function windowLimit(name: LimitName, id: number, window: LimitWindow, limit: number): WindowLimit {
  const step = stepOf(window);
  return {
    id,
    seconds: window.windowSeconds,
    step,
    longest: window.windowSeconds + step + 1,
    shared: sharedIndex(id),
    bit: 1 << LIMITS.indexOf(name),
    limit,
  };
}
