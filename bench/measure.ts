/** One budget: the same work on both engines, and how much of dockerd's figure ours may be. */
export type Budget<Subject> = {
  name: string;
  unit: 'ms' | 'MB';
  /** Ours may be at most this share of dockerd's. */
  atMost: number;
  rounds?: number;
  /** Does the work once and returns its figure; without a figure its time in milliseconds counts. */
  work: (subject: Subject) => Promise<number | void>;
};

export type Row = { name: string; unit: string; ours: number; theirs: number; ratio: number; atMost: number };

/** Runs the work on both in turn, A B A B, after one uncounted round, and compares the medians. */
export async function compare<Subject>(budget: Budget<Subject>, ours: Subject, theirs: Subject): Promise<Row> {
  const figures = { ours: [] as number[], theirs: [] as number[] };
  const rounds = budget.rounds ?? 9;
  for (let round = -1; round < rounds; round += 1) {
    for (const side of ['ours', 'theirs'] as const) {
      const started = performance.now();
      const figure = await budget.work(side === 'ours' ? ours : theirs);
      const spent = performance.now() - started;
      if (round >= 0) figures[side].push(figure ?? spent);
    }
  }
  const [mine, other] = [median(figures.ours), median(figures.theirs)];
  return {
    name: budget.name,
    unit: budget.unit,
    ours: mine,
    theirs: other,
    ratio: mine / other,
    atMost: budget.atMost,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** A Markdown table, for the README. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ name, unit, ours, theirs, ratio, atMost }) => {
    const verdict = ratio <= atMost ? 'met' : 'NOT MET';
    return `| ${name} | ${figure(theirs, unit)} | ${figure(ours, unit)} | ${ratio.toFixed(2)} | ≤ ${atMost.toFixed(2)} | ${verdict} |`;
  });
  return ['| work | dockerd | gantry | ratio | budget | |', '|---|---|---|---|---|---|', ...lines].join('\n');
}

function figure(value: number, unit: string): string {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ${unit}`;
}
