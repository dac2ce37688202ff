const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in docker's words: `About a minute`, `3 hours`. */
export function humanDuration(seconds: number): string {
  if (seconds < 1) return 'Less than a second';
  if (seconds < 2) return '1 second';
  if (seconds < MINUTE) return `${Math.floor(seconds)} seconds`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes === 1) return 'About a minute';
  if (minutes < 60) return `${minutes} minutes`;
  const hours = Math.floor(seconds / HOUR + 0.5);
  if (hours === 1) return 'About an hour';
  if (hours < 48) return `${hours} hours`;
  const days = Math.floor(seconds / DAY);
  if (days < 14) return `${days} days`;
  if (days < 60) return `${Math.floor(days / 7)} weeks`;
  return days < 730 ? `${Math.floor(days / 30)} months` : `${Math.floor(days / 365)} years`;
}
