import type { Line, Position } from './line.ts';

type Sent = Readonly<{ from: Position; atMs: number; bytes: number }>;

/** The most that both kernels buffer of a connection, and a bound for what is sent twice. */
const LIMIT_BYTES = 16 * 1024 * 1024;
const RETENTION_MS = 10_000;
/**
 * A batch that took longer has waited for a receiver that does not read: how much of the last batches it has taken is
 * unknown.
 */
const STALLED_MS = 1000;

/**
 * The batches that were sent over a connection in the last moments. A receiver that dies loses the data that it has not
 * read yet, and TCP does not tell how much that is.
 */
export class Recent {
  #sent: Sent[] = [];

  add(from: Position, lines: readonly Line[], startedMs: number, nowMs: number): void {
    const bytes = lines.reduce((sum, { text }) => sum + text.length + 100, 0);
    if (nowMs - startedMs < STALLED_MS) this.#sent = this.#sent.filter(({ atMs }) => nowMs - atMs < RETENTION_MS);
    else this.#sent = this.#sent.map((sent) => ({ ...sent, atMs: nowMs }));
    this.#sent.push({ from, atMs: nowMs, bytes });
    let total = this.#sent.reduce((sum, sent) => sum + sent.bytes, 0);
    while (total > LIMIT_BYTES && this.#sent.length > 1) total -= this.#sent.shift()!.bytes;
  }

  /** Returns their beginning and forgets them, because they are sent again. */
  take(nowMs: number): Position | undefined {
    const first = this.#sent.find(({ atMs }) => nowMs - atMs < RETENTION_MS);
    this.#sent = [];
    return first?.from;
  }
}
