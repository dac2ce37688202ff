import { lineOf } from '../http/streams/stream.ts';
import type { Progress } from '../images/progress/progress.ts';

const MAX_BYTES = 1024 * 1024;

/** The last lines of a quiet build, for the case that it fails: in one piece of memory, however many come. */
export class LastLines {
  #ring = Buffer.alloc(0);
  /** Number of bytes so far. */
  #end = 0;

  add(line: Progress): void {
    this.addLines(Buffer.from(lineOf(line)));
  }

  /** `lines`: as they are sent. */
  addLines(lines: Buffer): void {
    if (this.#ring.length === 0) this.#ring = Buffer.allocUnsafeSlow(MAX_BYTES);
    for (let left = lines; left.length > 0;) {
      const copied = left.copy(this.#ring, this.#end % MAX_BYTES);
      this.#end += copied;
      left = left.subarray(copied);
    }
  }

  /** Whole lines, as they are sent. */
  get bytes(): Buffer {
    const at = this.#end % MAX_BYTES;
    if (this.#end < MAX_BYTES) return this.#ring.subarray(0, at);
    const all = Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)]);
    return all.subarray(all.indexOf('\n') + 1); // the oldest may be cut
  }
}
