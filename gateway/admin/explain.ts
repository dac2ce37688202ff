import type { CallerState, LimitedCaller } from '@gantry/limiter/types.ts';

import type { LimitLine } from './caller-limits.ts';

/** Formats the limited callers for a terminal. */
export function limitedText(callers: readonly LimitedCaller[], nowSeconds: number): string {
  if (callers.length === 0) return 'Nobody is limited now.';
  const rows = callers
    .toSorted((one, other) => other.untilSeconds - one.untilSeconds)
    .map(({ key, refusedBy, where, untilSeconds, refused }) => [
      key,
      refusedBy,
      where,
      until(untilSeconds, nowSeconds),
      String(refused),
    ]);
  return table([['CALLER', 'LIMIT', 'WHERE', 'UNTIL', 'REFUSED'], ...rows]);
}

/** Every count of one caller. */
export function callerText({ key, underWay, windows }: CallerState, nowSeconds: number): string {
  const rows = windows.map(({ name, used, reset }) => {
    const isTime = name === 'cpu' || name === 'graphql-cpu';
    return [name, isTime ? `${(used / 1000).toFixed(3)} s` : String(used), until(reset, nowSeconds)];
  });
  const head = `${key}: ${underWay} under way`;
  return rows.length === 0 ? `${head}, no open window` : `${head}\n${table([['WINDOW', 'USED', 'UNTIL'], ...rows])}`;
}

/** Formats a caller's limits, and the rest of each. */
export function limitsText(lines: readonly LimitLine[], nowSeconds: number): string {
  const rows = lines.map(({ name, limit, used, left, reset }) => {
    return [
      name,
      formatRounded(limit),
      formatRounded(used),
      formatRounded(left),
      reset === 0 ? '' : until(reset, nowSeconds),
    ];
  });
  return table([['LIMIT', 'OF', 'USED', 'LEFT', 'UNTIL'], ...rows]);
}

function formatRounded(value: number | null): string {
  return value === null ? 'off' : String(Math.round(value * 1000) / 1000);
}

function until(seconds: number, nowSeconds: number): string {
  const left = Math.max(0, seconds - nowSeconds);
  const time = new Date(seconds * 1000).toISOString().slice(11, 19);
  return `${time}Z (${left >= 120 ? `${Math.ceil(left / 60)} min` : `${left} s`})`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths =
    rows[0]?.map((_, column) => rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
}
