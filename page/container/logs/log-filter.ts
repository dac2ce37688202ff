import { plainText } from './ansi.ts';
import { levelOf } from './levels.ts';
import type { LogState } from './log-buffer.ts';
import type { LogLine } from './log-lines.ts';

/** `warning`: warnings and errors. */
export type ShownLevel = 'all' | 'warning' | 'error';
export type Wanted = Readonly<{ search: string; level: ShownLevel }>;

/** The lines that fit. Each is looked at once, so that a fast log is not searched anew for each of its lines. */
export class LogFilter {
  #wanted: Wanted = { search: '', level: 'all' };
  #hits: LogLine[] = [];
  /** The numbers of the hits, counted from the first line that was read. */
  #numbers: number[] = [];
  #next = 0;

  apply({ lines, dropped }: LogState, wanted: Wanted): readonly LogLine[] {
    if (wanted.search === '' && wanted.level === 'all') return lines;
    if (wanted.search !== this.#wanted.search || wanted.level !== this.#wanted.level) {
      this.#wanted = wanted;
      [this.#hits, this.#numbers, this.#next] = [[], [], 0];
    }
    const firstKept = this.#numbers.findIndex((number) => number >= dropped);
    const kept = firstKept === -1 ? this.#numbers.length : firstKept;
    const hits = this.#hits.slice(kept);
    this.#numbers = this.#numbers.slice(kept);
    for (let number = Math.max(this.#next, dropped); number < dropped + lines.length; number += 1) {
      const line = lines[number - dropped]!;
      if (!fits(line, wanted)) continue;
      hits.push(line);
      this.#numbers.push(number);
    }
    this.#next = dropped + lines.length;
    this.#hits = hits;
    return hits;
  }
}

function fits({ text }: LogLine, { search, level }: Wanted): boolean {
  if (search !== '' && !plainText(text).toLowerCase().includes(search)) return false;
  if (level === 'all') return true;
  const own = levelOf(text);
  return own === 'error' || (level === 'warning' && own === 'warning');
}
