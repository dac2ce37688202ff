/** The machine's messages for the host among its readable output: lines of `@@gantry` and JSON. */

/** The word of a job for the demo, and its name in the table. */
export const DEMO = 'demo';

/** The result of a part of the job; a skipped test has failed. */
export type Result = Readonly<{ part: string; passed: number; failed: number; seconds: number }>;

export type Mark = 'begins' | 'alive' | Readonly<{ planned: string }> | Result | Readonly<{ ends: number }>;

export function mark(told: Mark): string {
  return `@@gantry ${JSON.stringify(told)}`;
}

/** Undefined for a line without one. systemd 257 writes marks of its own before the first one, and the kernel may. */
export function markIn(line: string): Mark | undefined {
  const json = /@@gantry ("\w+"|\{[^}]*\})/.exec(line)?.[1];
  return json === undefined ? undefined : (JSON.parse(json) as Mark);
}

/** The results of all parts, those too that the machine did not come to. */
export class Results {
  readonly #parts = new Map<string, Result | undefined>();

  add(told: Mark): void {
    if (typeof told === 'string') return;
    if ('planned' in told) this.#parts.set(told.planned, undefined);
    if ('part' in told) this.#parts.set(told.part, told);
  }

  /** Whether there is a result of each, and all have passed. */
  get isGood(): boolean {
    const all = [...this.#parts.values()];
    return all.length > 0 && all.every((result) => result !== undefined && result.failed === 0 && result.passed > 0);
  }

  /** A line for each part, and one for all. */
  table(): string {
    const all = [...this.#parts.values()].flatMap((result) => result ?? []);
    const sum = (of: (result: Result) => number): number => all.reduce((total, result) => total + of(result), 0);
    const width = Math.max(4, ...[...this.#parts.keys()].map(({ length }) => length));
    const row = (name: string, cells: readonly (number | string)[]): string =>
      name.padEnd(width) + cells.map((cell) => String(cell).padStart(9)).join('');
    const rows = [...this.#parts].map(([part, result]) =>
      row(part, result === undefined ? ['not run'] : [result.passed, result.failed, result.seconds]),
    );
    const total = row('all', [sum(({ passed }) => passed), sum(({ failed }) => failed), sum(({ seconds }) => seconds)]);
    return [row('', ['passed', 'failed', 'seconds']), ...rows, total].join('\n');
  }
}
