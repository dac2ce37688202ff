import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { median } from './measure.ts';

const execute = promisify(execFile);

/** Podman with its storage in a folder, in a network namespace; Debian's crun refuses hybrid cgroups. */
export function podmanIn(folder: string, netns: string): (...words: string[]) => Promise<void> {
  const roots = ['--runtime=runc', '--root', join(folder, 'podman'), '--runroot', join(folder, 'podman-run')];
  return async (...words) => {
    await execute('nsenter', [`--net=${netns}`, 'podman', ...roots, ...words], { maxBuffer: 2 ** 26 });
  };
}

/** Times of works on several engines, ours first. */
export class Figures {
  readonly #figures = new Map<string, Map<string, number[]>>();

  /** Does the work, and notes its time unless the round is below 0. */
  async time(round: number, work: string, engine: string, perform: () => Promise<void>): Promise<void> {
    const begun = performance.now();
    await perform();
    this.note(round, work, engine, performance.now() - begun);
  }

  /** Notes a figure unless the round is below 0. */
  note(round: number, work: string, engine: string, figure: number): void {
    const known = this.#figures.get(work) ?? new Map<string, number[]>();
    this.#figures.set(work, known);
    if (round >= 0) known.set(engine, [...(known.get(engine) ?? []), figure]);
  }

  /** Medians in Markdown; the ratio, and the budget, are of ours to the faster of the others. */
  table(budgetOf: (work: string) => number): string {
    const names = [...this.#figures.values().next().value!.keys()];
    const lines = [...this.#figures].map(([work, times]) => {
      const medians = names.map((name) => median(times.get(name)!));
      const ratio = medians[0]! / Math.min(...medians.slice(1));
      const budget = budgetOf(work);
      const shown = medians.map((time) => `${time.toFixed(0)} ms`).join(' | ');
      return `| ${work} | ${shown} | ${ratio.toFixed(2)} | ≤ ${budget.toFixed(2)} | ${ratio <= budget ? 'met' : 'NOT MET'} |`;
    });
    return [`| work | ${names.join(' | ')} | ratio | budget | |`, '|---|---|---|---|---|---|---|', ...lines].join('\n');
  }
}
