import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Properties by their names on the bus; undefined is the default. */
export type UnitProperties = Readonly<Record<string, number | string | undefined>>;

/** Names and "no limit" in the form of `systemctl`. */
const WORDS: ReadonlyMap<string, (value: number | string) => string> = new Map(
  Object.entries({
    CPUQuotaPerSecUSec: (value) => `CPUQuota=${Number(value) / 10_000}%`,
    CPUQuotaPeriodUSec: (value) => `CPUQuotaPeriodSec=${value}us`,
  }),
);
const NONE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    CPUQuotaPerSecUSec: 'CPUQuota=',
    CPUQuotaPeriodUSec: 'CPUQuotaPeriodSec=',
    MemoryMax: 'MemoryMax=infinity',
    MemoryLimit: 'MemoryLimit=infinity',
    MemorySwapMax: 'MemorySwapMax=infinity',
    MemoryLow: 'MemoryLow=0',
    TasksMax: 'TasksMax=infinity',
  }),
);

/** The words that change `before` into `after`. */
export function propertyWords(before: UnitProperties, after: UnitProperties): string[] {
  return Object.entries(after).flatMap(([name, value]) => {
    if (value === before[name]) return [];
    if (value === undefined) return [NONE.get(name) ?? `${name}=`];
    return [WORDS.get(name)?.(value) ?? `${name}=${value}`];
  });
}

/** Changes a unit until the next boot; systemd writes the resulting limits into its cgroup. */
export async function setUnitProperties(unit: string, words: readonly string[]): Promise<void> {
  if (words.length > 0) await execute('systemctl', ['set-property', '--runtime', unit, ...words]);
}
