/** Splits text that arrives in pieces into lines. */
export class LineReader {
  readonly #hear: (line: string) => void;
  #rest = '';

  constructor(hear: (line: string) => void) {
    this.#hear = hear;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#hear(line);
  }
}
