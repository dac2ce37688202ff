const MS_PER = { h: 3_600_000, m: 60_000 };

/** A duration as Go writes it: `1m30s`, `1.5s`, `20ms`. dockerd's messages have it so. */
export function goDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  if (milliseconds < 1000) return `${decimal(milliseconds)}ms`;
  const hours = Math.floor(milliseconds / MS_PER.h);
  const minutes = Math.floor((milliseconds % MS_PER.h) / MS_PER.m);
  const seconds = `${decimal((milliseconds % MS_PER.m) / 1000)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** Nanoseconds of a second are the least. */
function decimal(value: number): string {
  return String(Number(value.toFixed(9)));
}
