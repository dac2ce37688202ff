import { EngineError } from '../../lib/errors.ts';
import { MAX_FILE_BYTES, MAX_LINES, refuseAbove } from '../limits.ts';
import { withoutTabs, type FollowingLines } from './heredocs.ts';

/** As in docker, in bytes. */
const MAX_LINE_LENGTH = 65_535;

/** The lines of a file, one after the other. */
export class SourceLines implements FollowingLines {
  readonly #lines: readonly string[];
  /** The last number of each line, with and without its tabs in front; made for the first here-document. */
  readonly #last: { whole?: ReadonlyMap<string, number>; cut?: ReadonlyMap<string, number> } = {};
  number = 0;

  constructor(text: string) {
    const whole = text.startsWith('\ufeff') ? text.slice(1) : text;
    if (whole.includes('\0')) throw new EngineError('invalid', 'the file has a NUL character: it is no text in UTF-8');
    refuseAbove(MAX_FILE_BYTES, Buffer.byteLength(whole), 'the file', 'bytes');
    refuseManyLines(whole);
    const lines = whole.split('\n');
    if (lines.at(-1) === '') lines.pop();
    this.#lines = lines;
  }

  /** Without a carriage return at its end. */
  next(): string | undefined {
    const line = this.#lines[this.number];
    if (line === undefined) return undefined;
    this.number += 1;
    if (Buffer.byteLength(line) > MAX_LINE_LENGTH) {
      throw new EngineError('invalid', `dockerfile line greater than max allowed size of ${MAX_LINE_LENGTH}`);
    }
    return withoutReturn(line);
  }

  has(text: string, cutsTabs: boolean): boolean {
    const last = cutsTabs
      ? (this.#last.cut ??= lastNumbers(this.#lines.map(withoutTabs)))
      : (this.#last.whole ??= lastNumbers(this.#lines));
    return (last.get(text) ?? 0) > this.number;
  }
}

/** Before the file is split: four million lines are as many texts. */
function refuseManyLines(text: string): void {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    count += 1;
    refuseAbove(MAX_LINES, count, 'the file', 'lines');
  }
}

function lastNumbers(lines: readonly string[]): Map<string, number> {
  return new Map(lines.map((line, index) => [withoutReturn(line), index + 1]));
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
