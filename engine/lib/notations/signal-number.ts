import { constants } from 'node:os';

import { EngineError } from '../errors.ts';

const REALTIME_MIN = 34;
const REALTIME_MAX = 64;
const SIGNALS: ReadonlyMap<string, number> = new Map(Object.entries(constants.signals));

/** The number of `KILL`, `SIGKILL`, `9` or `RTMIN+3`. Throws `invalid`. */
export function signalNumber(written: string): number {
  const number = parseSignal(written);
  if (number === undefined) throw new EngineError('invalid', `Invalid signal: ${written}`);
  return number;
}

/** Like `signalNumber`, but undefined for an invalid one. */
export function parseSignal(written: string): number | undefined {
  const name = written.toUpperCase().replace(/^SIG/, '');
  const number = /^\d+$/.test(written) ? Number(written) : (realtime(name) ?? byName(name));
  return number === undefined || number < 1 || number > REALTIME_MAX ? undefined : number;
}

function byName(name: string): number | undefined {
  return name === 'CLD' ? constants.signals.SIGCHLD : SIGNALS.get(`SIG${name}`);
}

function realtime(name: string): number | undefined {
  const match = /^RT(MIN|MAX)(?:([+-])(\d+))?$/.exec(name);
  if (match === null) return undefined;
  const distance = Number(match[3] ?? 0) * (match[2] === '-' ? -1 : 1);
  const number = (match[1] === 'MIN' ? REALTIME_MIN : REALTIME_MAX) + distance;
  return number >= REALTIME_MIN ? number : undefined;
}
