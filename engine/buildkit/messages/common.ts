import { field, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';

/** Seconds since 1970, and the nanoseconds behind them. */
export const Timestamp = message({ seconds: field(1, INTEGER), nanos: field(2, INTEGER) });
export type Time = Readonly<{ seconds: number; nanos: number }>;

export function timeOf({ epochNanoseconds }: Temporal.Instant): Time {
  return { seconds: Number(epochNanoseconds / 1_000_000_000n), nanos: Number(epochNanoseconds % 1_000_000_000n) };
}

export const Platform = message({
  architecture: field(1, TEXT),
  os: field(2, TEXT),
  variant: field(3, TEXT),
});

export const BuilderVersion = message({ package: field(1, TEXT), version: field(2, TEXT), revision: field(3, TEXT) });

export const Worker = message({
  id: field(1, TEXT),
  labels: map(2, TEXT),
  platforms: list(3, nested(Platform)),
  version: field(5, nested(BuilderVersion)),
});

export const TypeAndAttributes = message({ type: field(1, TEXT), attributes: map(2, TEXT) });

export const Nothing = message({});
