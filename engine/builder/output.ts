import type { Progress, Report } from '../images/progress.ts';

/** The output of a build for its client. */
export class BuildOutput {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  /** For lines of another kind, such as those of a pull. */
  get report(): Report {
    return this.#report;
  }

  text(stream: string): void {
    this.#report({ stream });
  }

  /** Red, as in docker, for the stderr of a step. */
  errorText(text: string): void {
    this.#report({ stream: `\u001b[91m${text}\u001b[0m` });
  }
}

/** Several outputs in a fixed order: the first one that has not ended is passed on at once, the others wait. */
export class OrderedOutputs {
  readonly #report: Report;
  readonly #waiting: Progress[][];
  readonly #ended: boolean[];
  #first = 0;

  constructor(report: Report, count: number) {
    this.#report = report;
    this.#waiting = Array.from({ length: count }, () => []);
    this.#ended = Array.from({ length: count }, () => false);
  }

  at(index: number): BuildOutput {
    return new BuildOutput((line) => {
      if (index <= this.#first) this.#report(line);
      else this.#waiting[index]!.push(line);
    });
  }

  end(index: number): void {
    this.#ended[index] = true;
    while (this.#ended[this.#first] === true) {
      this.#first += 1;
      for (const line of this.#waiting[this.#first]?.splice(0) ?? []) this.#report(line);
    }
  }
}
