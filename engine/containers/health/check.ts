import type { ContainerConfig } from '../settings/container-config-schema.ts';

/** A health check with all defaults filled in. */
export type Check = Readonly<{
  command: readonly string[];
  intervalMs: number;
  timeoutMs: number;
  startPeriodMs: number;
  /** Instead of the interval, in the start period until a check succeeds. */
  startIntervalMs: number;
  /** Failures in a row that make it unhealthy. */
  retries: number;
}>;

/** dockerd's. */
const DEFAULTS = { intervalMs: 30_000, timeoutMs: 30_000, startPeriodMs: 0, startIntervalMs: 5000, retries: 3 };
const SHELL = ['/bin/sh', '-c'];
const NS_PER_MS = 1e6;

/** Undefined without a test, with `NONE`, and, as in dockerd, with an unknown kind. */
export function checkOf({ Healthcheck }: Pick<ContainerConfig, 'Healthcheck'>): Check | undefined {
  const { Test = [], Interval = 0, Timeout = 0, Retries = 0, ...start } = Healthcheck ?? {};
  const { StartPeriod = 0, StartInterval = 0 } = start;
  const [kind, ...words] = Test;
  const command = kind === 'CMD' ? words : kind === 'CMD-SHELL' ? [...SHELL, ...words] : [];
  if (command.length === 0) return undefined;
  return {
    command,
    intervalMs: Interval / NS_PER_MS || DEFAULTS.intervalMs,
    timeoutMs: Timeout / NS_PER_MS || DEFAULTS.timeoutMs,
    startPeriodMs: StartPeriod / NS_PER_MS || DEFAULTS.startPeriodMs,
    startIntervalMs: StartInterval / NS_PER_MS || DEFAULTS.startIntervalMs,
    retries: Retries || DEFAULTS.retries,
  };
}
