const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** `1.5 MB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const SPANS: readonly (readonly [seconds: number, unit: string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** `3 h`; `0 s` for times to come. */
export function spanText(seconds: number): string {
  const [size, unit] = SPANS.find(([size]) => seconds >= size * 2) ?? [1, 's'];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
}

export function ageText(time: Date | number, now = Date.now()): string {
  return spanText((now - (typeof time === 'number' ? time : time.getTime())) / 1000);
}

/** A date and time for people; undefined for docker's year 1. */
export function timeText(text: string): string | undefined {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) || time.getFullYear() <= 1 ? undefined : time.toLocaleString();
}

/** The first twelve digits of an id. */
export function shortId(id: string): string {
  return id.replace(/^sha256:/, '').slice(0, 12);
}

export function percentText(share: number): string {
  return `${share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
