import { EngineError } from '../../lib/errors.ts';

const SECONDS = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/;
/** A duration in Go's form: `1h30m`, `1.5s`, `200ms`. */
const LENGTH = /^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|\u00b5s|ns))+$/;
const UNIT_NS: ReadonlyMap<string, number> = new Map(
  Object.entries({ h: 3.6e12, m: 6e10, s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, ns: 1 }),
);
const LOCAL_DATE = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+)?$/;

/**
 * A time in the form of `since` and `until`: UNIX seconds with a fraction, RFC 3339, a date or a date with a time in
 * the daemon's own zone, and, where `now` is given, a length of time before it. Throws `invalid`.
 */
export function parseTime(name: string, text: string, now?: Temporal.Instant): Temporal.Instant {
  try {
    const [, sign, whole = '', fraction = ''] = SECONDS.exec(text) ?? [];
    if (sign !== undefined) {
      const ns = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
      return new Temporal.Instant(sign === '-' ? -ns : ns);
    }
    if (now !== undefined && LENGTH.test(text)) return now.subtract({ nanoseconds: nanosecondsOf(text) });
    if (!LOCAL_DATE.test(text)) return Temporal.Instant.from(text);
    return Temporal.PlainDateTime.from(text).toZonedDateTime(Temporal.Now.timeZoneId()).toInstant();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new EngineError('invalid', `invalid value for "${name}": ${text}`, { cause: error });
  }
}

function nanosecondsOf(length: string): number {
  const parts = [...length.matchAll(/([\d.]+)([a-z\u00b5]+)/g)];
  return Math.round(parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNIT_NS.get(unit!) ?? 0), 0));
}
