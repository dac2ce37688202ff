/** One line of a progress stream. */
export type Progress = {
  status?: string;
  stream?: string;
  id?: string;
  progress?: string;
  progressDetail?: { current?: number; total?: number };
  /** For programs. */
  aux?: Readonly<Record<string, unknown>>;
};

export type Report = (line: Progress) => void;

const BAR = 50;

/** Progress as numbers, and as the bar that clients print. */
export function progressLine(status: string, id: string, current: number, total: number): Progress {
  const filled = total === 0 ? BAR : Math.floor((current / total) * BAR);
  const bar = filled < BAR ? `${'='.repeat(filled)}>${' '.repeat(BAR - filled)}` : `${'='.repeat(BAR)}>`;
  const progress = `[${bar}]  ${bytesText(current)}/${bytesText(total)}`;
  return { status, progressDetail: { current, total }, progress, id };
}

/** Four digits and a decimal unit: `2.131MB`. */
function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(4))}${units[unit]}`;
}
