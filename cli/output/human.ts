const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** `3 minutes`, in docker's words and steps. */
function durationText(seconds: number): string {
  if (seconds < 1) return 'Less than a second';
  if (seconds < 2) return '1 second';
  if (seconds < MINUTE) return `${Math.floor(seconds)} seconds`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes === 1) return 'About a minute';
  if (minutes < 60) return `${minutes} minutes`;
  const hours = Math.round(seconds / HOUR);
  if (hours === 1) return 'About an hour';
  if (hours < 48) return `${hours} hours`;
  const wholeHours = Math.floor(seconds / HOUR);
  if (wholeHours < 24 * 14) return `${Math.floor(wholeHours / 24)} days`;
  if (wholeHours < 24 * 60) return `${Math.floor(wholeHours / 24 / 7)} weeks`;
  if (wholeHours < 24 * 365 * 2) return `${Math.floor(wholeHours / 24 / 30)} months`;
  return `${Math.floor(seconds / (365 * DAY))} years`;
}

/** `3 minutes ago`, of UNIX seconds. */
export function ago(unixSeconds: number, now = Date.now()): string {
  return `${durationText(Math.max(0, now / 1000 - unixSeconds))} ago`;
}

/** `2026-01-31 12:00:00 +0000 UTC`, as docker prints a time in a list; `fraction` of the second is such as `.25`. */
export function timeText(unixSeconds: number, fraction = ''): string {
  const at = new Date(unixSeconds * 1000);
  const offset = -at.getTimezoneOffset();
  const local = new Date(at.getTime() + offset * 60_000).toISOString();
  const zone = `${offset < 0 ? '-' : '+'}${digits(offset / 60)}${digits(offset % 60)}`;
  const name = offset === 0 ? 'UTC' : (/\(([^)]+)\)/.exec(at.toString())?.[1] ?? zone);
  return `${local.slice(0, 10)} ${local.slice(11, 19)}${fraction} ${zone} ${name}`;
}

function digits(value: number): string {
  return String(Math.floor(Math.abs(value))).padStart(2, '0');
}

/** `12.3MB`, in powers of 1000 as docker prints sizes. */
export function sizeText(bytes: number, digits = 3): string {
  return scaled(bytes, 1000, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], digits);
}

/** `1.5GiB`, in powers of 1024 as docker prints memory. */
export function memoryText(bytes: number): string {
  return scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], 4);
}

function scaled(bytes: number, base: number, units: readonly string[], digits: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= base && unit < units.length - 1) {
    value /= base;
    unit += 1;
  }
  return `${Number(value.toPrecision(digits))}${units[unit]}`;
}

/** The id without its algorithm, as short as lists show it. */
export function shortId(id: string): string {
  return id.replace(/^sha256:/, '').slice(0, 12);
}
