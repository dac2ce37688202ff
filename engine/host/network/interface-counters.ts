import { readFileSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';

export type InterfaceCounters = Readonly<{
  name: string;
  rxBytes: number;
  rxPackets: number;
  rxErrors: number;
  rxDropped: number;
  txBytes: number;
  txPackets: number;
  txErrors: number;
  txDropped: number;
}>;

/**
 * Counters of the interfaces in a process's network namespace; none when the process is gone. Read through /proc, because this
 * costs no change of namespaces and holds none.
 */
export function interfaceCounters(pid: number): InterfaceCounters[] {
  try {
    return parseInterfaceCounters(readFileSync(`/proc/${pid}/net/dev`, 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH') || hasCode(error, 'EINVAL')) return [];
    throw error;
  }
}

/** Two lines of titles, then `eth0: <8 of receiving> <8 of sending>`. */
export function parseInterfaceCounters(text: string): InterfaceCounters[] {
  return text
    .split('\n')
    .slice(2)
    .filter((line) => line.includes(':'))
    .map((line) => {
      const colon = line.lastIndexOf(':');
      const values = line
        .slice(colon + 1)
        .trim()
        .split(/\s+/)
        .map(Number);
      const at = (place: number): number => values[place] ?? 0;
      return {
        name: line.slice(0, colon).trim(),
        ...{ rxBytes: at(0), rxPackets: at(1), rxErrors: at(2), rxDropped: at(3) },
        ...{ txBytes: at(8), txPackets: at(9), txErrors: at(10), txDropped: at(11) },
      };
    });
}
