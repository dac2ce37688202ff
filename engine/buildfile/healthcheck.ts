import { EngineError } from '../lib/errors.ts';
import { goDurationNs } from '../lib/notations/go-duration.ts';
import type { Healthcheck } from '../records/healthcheck.ts';
import type { Dialect } from './dialect.ts';
import { flag, readFlags } from './flags.ts';
import { quote } from './go-text.ts';
import type { Line } from './parse.ts';

const MIN_NS = 1_000_000;

/** `HEALTHCHECK NONE`, or `HEALTHCHECK --interval=5s CMD …`. Throws `invalid`. */
export function healthcheckOf({ args, flags: written, isJson }: Line, dialect: Dialect): Healthcheck {
  const isClassic = dialect === 'classic';
  if (args.length === 0) throw new EngineError('invalid', 'HEALTHCHECK requires at least one argument');
  const [kind, ...command] = [args[0]!.toUpperCase(), ...args.slice(1)];
  if (kind === 'NONE') {
    if (command.length > 0) throw new EngineError('invalid', 'HEALTHCHECK NONE takes no arguments');
    return { Test: ['NONE'] };
  }
  const newer = isClassic ? [] : ['start-interval'];
  const flags = readFlags(written, dialect, { once: ['interval', 'timeout', 'start-period', ...newer, 'retries'] });
  if (kind !== 'CMD') {
    throw new EngineError('invalid', `Unknown type ${quote(kind)} in HEALTHCHECK (try CMD)`);
  }
  if (command.length === 0) throw new EngineError('invalid', 'Missing command after HEALTHCHECK CMD');
  const retries = retriesOf(flag(flags, 'retries'), isClassic);
  const duration = (name: string): number => durationOf(name, flag(flags, name), isClassic);
  const times = {
    Interval: duration('interval'),
    Timeout: duration('timeout'),
    StartPeriod: duration('start-period'),
    StartInterval: duration('start-interval'),
    Retries: retries,
  };
  // As Go omits zero values.
  const given = Object.fromEntries(Object.entries(times).filter(([, value]) => value !== 0));
  return { Test: [isJson ? 'CMD' : 'CMD-SHELL', ...command], ...given };
}

/** BuildKit takes 0 for the default. */
function durationOf(name: string, text: string, isClassic: boolean): number {
  if (text === '') return 0;
  const ns = goDurationNs(text);
  if (ns === 0 && !isClassic) return 0;
  if (ns < MIN_NS) throw new EngineError('invalid', `Interval ${quote(name)} cannot be less than 1ms`);
  return ns;
}

function retriesOf(text: string, isClassic: boolean): number {
  if (text === '') return 0;
  if (!/^[+-]?\d+$/.test(text)) {
    throw new EngineError('invalid', `strconv.ParseInt: parsing ${quote(text)}: invalid syntax`);
  }
  const retries = Number(text);
  if (!isClassic && retries < 0) throw new EngineError('invalid', `--retries cannot be negative (${retries})`);
  if (isClassic && retries < 1) throw new EngineError('invalid', `--retries must be at least 1 (not ${retries})`);
  if (retries > 2 ** 31 - 1) {
    throw new EngineError('invalid', `strconv.ParseInt: parsing ${quote(text)}: value out of range`);
  }
  return retries;
}
