import { constants } from 'node:os';

import { EngineError } from '../errors.ts';

const REALTIME_MIN = 34;
const REALTIME_MAX = 64;

/** The number of `KILL`, `SIGKILL`, `9` or `RTMIN+3`. Throws `invalid`. */
export function signalNumber(written: string): number {
  const name = written.trim().toUpperCase().replace(/^SIG/, '');
  const number = /^\d+$/.test(name) ? Number(name) : (realtime(name) ?? byName(name));
  if (number === undefined || number < 1 || number > REALTIME_MAX) {
    throw new EngineError('invalid', `Invalid signal: ${written}`);
  }
  return number;
}

function byName(name: string): number | undefined {
  return (constants.signals as Readonly<Record<string, number>>)[`SIG${name}`];
}

function realtime(name: string): number | undefined {
  const match = /^RT(MIN|MAX)(?:([+-])(\d+))?$/.exec(name);
  if (match === null) return undefined;
  const distance = Number(match[3] ?? 0) * (match[2] === '-' ? -1 : 1);
  const number = (match[1] === 'MIN' ? REALTIME_MIN : REALTIME_MAX) + distance;
  return number >= REALTIME_MIN ? number : undefined;
}
