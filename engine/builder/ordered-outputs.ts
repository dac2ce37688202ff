import { join } from 'node:path';

import type { Progress } from '../images/progress/progress.ts';
import { HeldLines, HeldRoom } from './held-lines.ts';
import { LineOutput, type BuildOutput, type Sink, type StageOutput } from './output.ts';

/** Several outputs in a fixed order: the first one that has not ended is passed on at once, the others wait. */
export class OrderedOutputs implements BuildOutput {
  readonly whole: StageOutput;
  readonly #outputs: readonly OneOutput[];
  readonly #ended: boolean[];
  #first = 0;

  /** `folder`: for the lines that wait. */
  constructor(client: Sink, folder: string, count: number) {
    this.whole = new LineOutput(client);
    const room = new HeldRoom();
    this.#outputs = Array.from(
      { length: count },
      (_, index) => new OneOutput(client, new HeldLines(join(folder, `output-${index}`), room)),
    );
    this.#ended = Array.from({ length: count }, () => false);
    this.#outputs[0]?.release(undefined);
  }

  readonly stage = (index: number): StageOutput => new LineOutput(this.#outputs[index]!);

  readonly endStage = (index: number): void => {
    this.#ended[index] = true;
    while (this.#ended[this.#first] === true) {
      const ended = this.#outputs[this.#first]!;
      this.#first += 1;
      this.#outputs[this.#first]?.release(ended);
    }
  };

  readonly settled = async (): Promise<void> => {
    for (const output of this.#outputs) await output.taken();
  };
}

class OneOutput implements Pick<Sink, 'report' | 'taken'> {
  readonly #client: Sink;
  readonly #held: HeldLines;
  #isReleased = false;
  /** Lines and the release in their order, one after the other. */
  #work = Promise.resolve();

  constructor(client: Sink, held: HeldLines) {
    this.#client = client;
    this.#held = held;
  }

  readonly report = (line: Progress): void => {
    this.#then(async () => await (this.#isReleased ? this.#pass(line) : this.#held.add(line)));
  };

  readonly taken = async (): Promise<void> => await this.#work;

  /** From now on lines are passed on: those that have waited first, behind all lines of `before`. */
  release(before: OneOutput | undefined): void {
    this.#then(async () => {
      await before?.taken();
      await this.#held.passTo(this.#client);
      this.#isReleased = true;
    });
  }

  #then(work: () => Promise<void>): void {
    this.#work = this.#work.then(work);
    this.#work.catch(() => undefined); // `taken` throws it
  }

  async #pass(line: Progress): Promise<void> {
    this.#client.report(line);
    await this.#client.taken();
  }
}
