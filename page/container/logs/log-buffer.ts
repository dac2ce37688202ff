import { open } from '../../api/request.ts';
import { bytesOf, follow } from '../../api/streams.ts';
import { Store } from '../../parts/store.ts';
import { LogReader, type LogLine } from './log-lines.ts';

export type LogState = Readonly<{
  lines: readonly LogLine[];
  /** Lines that were dropped, because a browser cannot keep all. */
  dropped: number;
}>;
type Options = Readonly<{
  tty: boolean;
  /** Reads from this time on, and follows nothing; else from the last lines on. */
  from?: Date | undefined;
}>;

export const FIRST_LINES = 5000;
/** Lines after a time that was jumped to. */
const MAX_LINES_AFTER = 50_000;
const MAX_LINES = 200_000;
/** Dropped at once, so that a fast log does not move all lines for each new one. */
const DROPPED_LINES = 50_000;
const DRAW_INTERVAL_MS = 100;

/** The lines of a container's log. */
export class LogBuffer {
  readonly state = new Store<LogState>({ lines: [], dropped: 0 });
  readonly #id: string;
  readonly #isFramed: boolean;
  readonly #from: Date | undefined;
  #lines: LogLine[] = [];
  #dropped = 0;
  #isDue = false;

  constructor(id: string, { tty, from }: Options) {
    this.#id = id;
    this.#isFramed = !tty;
    this.#from = from;
  }

  /** Reads while somebody looks; returns the function that ends it. */
  follow(): () => void {
    return follow({
      read: async (signal) => {
        if (this.#from === undefined) await this.#readLast(signal);
        else if (this.#lines.length === 0) await this.#readFrom(this.#from, signal);
        await new Promise((resolve) => signal.addEventListener('abort', resolve)); // it has ended: nothing follows
      },
    });
  }

  async #readLast(signal: AbortSignal): Promise<void> {
    // After a break the lines since the last one; the first of them is known.
    const last = this.#lines.at(-1)?.time;
    const from = last === undefined ? { tail: String(FIRST_LINES) } : { since: last };
    const query = { ...WHOLE, ...from, follow: true };
    const reader = new LogReader({ isFramed: this.#isFramed });
    for await (const piece of bytesOf(await open('GET', `/containers/${this.#id}/logs`, { query, signal }))) {
      this.#add(reader.read(piece).filter(({ time }) => last === undefined || time > last));
    }
  }

  async #readFrom(from: Date, signal: AbortSignal): Promise<void> {
    const query = { ...WHOLE, since: from.toISOString() };
    const reader = new LogReader({ isFramed: this.#isFramed });
    for await (const piece of bytesOf(await open('GET', `/containers/${this.#id}/logs`, { query, signal }))) {
      this.#add(reader.read(piece));
      if (this.#lines.length >= MAX_LINES_AFTER) return;
    }
    this.#add(reader.end());
  }

  #add(lines: readonly LogLine[]): void {
    for (const line of lines) this.#lines.push(line);
    if (this.#lines.length > MAX_LINES + DROPPED_LINES) {
      this.#dropped += this.#lines.length - MAX_LINES;
      this.#lines = this.#lines.slice(-MAX_LINES);
    }
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => {
      this.#isDue = false;
      this.state.set({ lines: this.#lines.slice(), dropped: this.#dropped });
    }, DRAW_INTERVAL_MS);
  }
}

const WHOLE = { stdout: true, stderr: true, timestamps: true } as const;

/** The whole log as text, for a download. */
export async function wholeLog(id: string, { tty }: { tty: boolean }): Promise<Blob> {
  const reader = new LogReader({ isFramed: !tty });
  const parts: string[] = [];
  for await (const piece of bytesOf(await open('GET', `/containers/${id}/logs`, { query: WHOLE }))) {
    parts.push(textOf(reader.read(piece)));
  }
  parts.push(textOf(reader.end()));
  return new Blob(parts, { type: 'text/plain' });
}

function textOf(lines: readonly LogLine[]): string {
  return lines.map((line) => `${line.time} ${line.text}\n`).join('');
}
