import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** By their names on the bus; undefined is the default. */
export type UnitProperties = Readonly<Record<string, number | string | undefined>>;

/** What `systemctl` writes differently, and what stands for no limit. */
const WORDS: Readonly<Record<string, (value: number | string) => string>> = {
  CPUQuotaPerSecUSec: (value) => `CPUQuota=${Number(value) / 10_000}%`,
  CPUQuotaPeriodUSec: (value) => `CPUQuotaPeriodSec=${value}us`,
};
const NONE: Readonly<Record<string, string>> = {
  CPUQuotaPerSecUSec: 'CPUQuota=',
  CPUQuotaPeriodUSec: 'CPUQuotaPeriodSec=',
  MemoryMax: 'MemoryMax=infinity',
  MemoryLimit: 'MemoryLimit=infinity',
  MemorySwapMax: 'MemorySwapMax=infinity',
  MemoryLow: 'MemoryLow=0',
  TasksMax: 'TasksMax=infinity',
};

/** The words that make `before` to `after`. */
export function propertyWords(before: UnitProperties, after: UnitProperties): string[] {
  return Object.entries(after).flatMap(([name, value]) => {
    if (value === before[name]) return [];
    if (value === undefined) return [NONE[name] ?? `${name}=`];
    return [WORDS[name]?.(value) ?? `${name}=${value}`];
  });
}

/** Changes a unit until the machine's end; systemd writes what follows into its cgroup. */
export async function setUnitProperties(unit: string, words: readonly string[]): Promise<void> {
  if (words.length > 0) await execute('systemctl', ['set-property', '--runtime', unit, ...words]);
}
