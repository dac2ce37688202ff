import { readFileSync } from 'node:fs';

const NS_PER_TICK = 10_000_000;
/** user, nice, system, idle, iowait, irq, softirq: the other fields are parts of these, or time of other machines. */
const COUNTED = 7;

/** The time of all CPUs of this machine since its start, idle time included. */
export type CpuTime = Readonly<{ totalNs: number; online: number }>;

export function readCpuTime(stat = readFileSync('/proc/stat', 'utf8')): CpuTime {
  const lines = stat.slice(0, stat.indexOf('\nintr')).split('\n');
  const [, ...fields] = (lines[0] ?? '').split(/\s+/);
  const ticks = fields.slice(0, COUNTED).reduce((sum, field) => sum + Number(field), 0);
  return { totalNs: ticks * NS_PER_TICK, online: lines.filter((line) => /^cpu\d/.test(line)).length };
}
