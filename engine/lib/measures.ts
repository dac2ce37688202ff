/**
 * The operations of this process for Prometheus: their durations and counts.
 *
 * They are kept for the whole process, as its log is, because nothing that the engine does depends on them. An
 * observation costs less than a microsecond, so they are kept whether somebody reads them or not.
 */

/** The upper bounds of the buckets, in seconds: the defaults of Prometheus, which dockerd has too. */
export const BUCKET_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** `counts` has one more element than BUCKET_SECONDS, for what took longer; none of them counts those before it. */
export type Durations = { counts: number[]; sumSeconds: number };

/** The timed operations, with their actions. */
export type Timed = {
  container: 'create' | 'start' | 'stop' | 'delete' | 'changes' | 'commit' | 'exec';
  network: 'allocate' | 'connect' | 'release';
  image: 'pull' | 'push';
  /** By the instruction, such as `RUN`. */
  buildStep: string;
};

const NANOSECONDS = 1e9;

const durations = new Map<keyof Timed, Map<string, Durations>>();
const counts = new Map<string, number>();

/**
 * Begins to time an action; the function that it returns is called when it has succeeded. Failed ones are not counted.
 */
export function measure<K extends keyof Timed>(kind: K, action: Timed[K]): () => void {
  const begun = process.hrtime.bigint();
  return () => observe(kind, action, Number(process.hrtime.bigint() - begun) / NANOSECONDS);
}

function observe<K extends keyof Timed>(kind: K, action: Timed[K], seconds: number): void {
  const ofKind = durations.getOrInsertComputed(kind, () => new Map());
  const one = ofKind.getOrInsertComputed(action, () => ({
    counts: Array.from({ length: BUCKET_SECONDS.length + 1 }, () => 0),
    sumSeconds: 0,
  }));
  const bucket = BUCKET_SECONDS.findIndex((bound) => seconds <= bound);
  one.counts[bucket < 0 ? BUCKET_SECONDS.length : bucket]! += 1;
  one.sumSeconds += seconds;
}

/** By action, in the order in which they were first seen. */
export function durationsOf(kind: keyof Timed): ReadonlyMap<string, Readonly<Durations>> {
  return durations.get(kind) ?? new Map();
}

export type Counted = 'healthChecks' | 'healthChecksFailed' | 'builds';
/** dockerd's words for why a build has failed. */
export type BuildFailure = 'build_canceled' | 'dockerfile_syntax_error' | 'error_processing_commands_error';

export function count(what: Counted | BuildFailure): void {
  counts.set(what, countOf(what) + 1);
}

export function countOf(what: Counted | BuildFailure): number {
  return counts.get(what) ?? 0;
}
