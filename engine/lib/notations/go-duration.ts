import { EngineError } from '../errors.ts';

const UNIT_NS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ns: 1,
    us: 1e3,
    µs: 1e3,
    μs: 1e3,
    ms: 1e6,
    s: 1e9,
    m: 60e9,
    h: 3600e9,
  }),
);
const PART = /(\d+(?:\.\d*)?|\.\d+)([a-z\u00b5\u03bc]+)/gu;

/** `1m30s` in nanoseconds, as Go reads it. Throws `invalid`. */
export function goDurationNs(text: string): number {
  const [, sign = '', rest = ''] = /^([+-]?)(.*)$/su.exec(text) ?? [];
  if (rest === '0') return 0;
  const parts = [...rest.matchAll(PART)];
  if (rest === '' || parts.map(([part]) => part).join('') !== rest) {
    const isNumber = /^(\d+(\.\d*)?|\.\d+)$/.test(rest);
    const why = isNumber ? 'missing unit in duration' : 'invalid duration';
    throw new EngineError('invalid', `time: ${why} ${JSON.stringify(text)}`);
  }
  const sum = parts.reduce((ns, [, count, unit]) => {
    const unitNs = UNIT_NS.get(unit!);
    if (unitNs !== undefined) return ns + Number(count) * unitNs;
    throw new EngineError('invalid', `time: unknown unit ${JSON.stringify(unit!)} in duration ${JSON.stringify(text)}`);
  }, 0);
  return Math.round(sum) * (sign === '-' ? -1 : 1);
}

/** Nanoseconds as Go writes them: `1m30s`, `500ms`. */
export function goDurationText(ns: number): string {
  if (ns === 0) return '0s';
  if (ns < 1e3) return `${ns}ns`;
  if (ns < 1e6) return `${decimal(ns / 1e3)}µs`;
  if (ns < 1e9) return `${decimal(ns / 1e6)}ms`;
  const hours = Math.floor(ns / 3600e9);
  const minutes = Math.floor((ns % 3600e9) / 60e9);
  const seconds = `${decimal((ns % 60e9) / 1e9)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

function decimal(value: number): string {
  return String(Number(value.toFixed(9)));
}
