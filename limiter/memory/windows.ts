import { freedAt } from '../window-form.ts';
import type { Span } from './flat-rules.ts';
import {
  add,
  CHUNK_MASK,
  END,
  endOfStep,
  ID,
  isOpen,
  MAX_SIZE,
  NEXT,
  type Slot,
  SLOTS,
  spent,
  subtract,
  USED,
  WINDOWS,
} from './record.ts';
import type { Slab } from './slab.ts';

type Seen = (words: Int32Array, at: number, address: number) => void;

/**
 * The windows of a caller whose record lies at `at` of `words`: those in their slots, and the others in a chain. A sliding
 * window is as many of the chain, with the same id, as it has steps.
 */
export class Windows {
  readonly #slab: Slab;

  constructor(slab: Slab) {
    this.#slab = slab;
  }

  /** Points spent in a window that has a slot. */
  spent(words: Int32Array, at: number, slot: Slot, now: number, span: Span): number {
    if (span.step === 0) return spent(words, at + slot.used, at + slot.end, now, span);
    return this.spentOf(words, at, slot.id, now, span);
  }

  /** Points spent in another window; 0 when it is not open. */
  spentOf(chunk: Int32Array, recordAt: number, id: number, now: number, span: Span): number {
    let words = chunk;
    let at = recordAt + WINDOWS;
    let sum = 0;
    for (;;) {
      if (words[at + ID] === id) {
        sum += spent(words, at + USED, at + END, now, span);
        if (span.step === 0) return sum;
      }
      const next = words[at + NEXT]!;
      if (next === 0) return sum;
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
  }

  /** When the window of a slot ends, or the first of it no longer counts; 0: it is not open. */
  end(words: Int32Array, at: number, slot: Slot, now: number, span: Span): number {
    if (span.step > 0) return this.freed(words, at, slot.id, now, span, 1);
    const end = words[at + slot.end]!;
    return isOpen(end, now, span) ? end : 0;
  }

  /** When so much of a window no longer counts; all of a fixed one ends together. 0: never. */
  freed(words: Int32Array, at: number, id: number, now: number, span: Span, amount: number): number {
    if (span.step === 0) return this.#endOf(words, at, id, now, span);
    const steps: { used: number; end: number }[] = [];
    this.#each(words, at, (chunk, place) => {
      const end = chunk[place + END]!;
      if (chunk[place + ID] === id && isOpen(end, now, span)) steps.push({ used: chunk[place + USED]!, end });
    });
    return freedAt(steps, amount);
  }

  /** `freed` of a window that may have a slot. */
  freedIn(words: Int32Array, at: number, slot: Slot, now: number, span: Span, amount: number): number {
    return span.step === 0 ? this.end(words, at, slot, now, span) : this.freed(words, at, slot.id, now, span, amount);
  }

  add(words: Int32Array, at: number, slot: Slot, amount: number, now: number, opened: number, span: Span): void {
    if (span.step === 0) add(words, at + slot.used, at + slot.end, amount, now, opened, span);
    else this.addTo(words, at, slot.id, amount, now, opened, span);
  }

  /** Adds to a window of the chain; takes the place of one that is over, if any. */
  addTo(
    chunk: Int32Array,
    recordAt: number,
    id: number,
    amount: number,
    now: number,
    opened: number,
    span: Span,
  ): void {
    const stepsEnd = span.step === 0 ? 0 : endOfStep(now, span);
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (;;) {
      if (words[at + ID] === id && (stepsEnd === 0 || words[at + END] === stepsEnd)) {
        return add(words, at + USED, at + END, amount, now, opened, span);
      }
      const next = words[at + NEXT]!;
      if (next === 0) break;
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
    this.put(chunk, recordAt, id, amount, stepsEnd === 0 ? opened + span.seconds : stepsEnd, now);
  }

  /** A further window of the chain. */
  put(chunk: Int32Array, recordAt: number, id: number, used: number, end: number, now: number): void {
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (;;) {
      if (words[at + END]! <= now) break;
      const next = words[at + NEXT]!;
      if (next === 0) {
        const address = this.#slab.takeWindow();
        words[at + NEXT] = address;
        words = this.#slab.chunk(address);
        at = address & CHUNK_MASK;
        words[at + NEXT] = 0;
        break;
      }
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
    words[at + ID] = id;
    words[at + USED] = Math.min(MAX_SIZE, used);
    words[at + END] = end;
  }

  take(words: Int32Array, at: number, slot: Slot, amount: number, now: number, span: Span): void {
    if (span.step === 0) subtract(words, at + slot.used, at + slot.end, amount, now, span);
    else this.takeFrom(words, at, slot.id, amount, now, span);
  }

  /** Takes back from a window of the chain, where it is open: from the oldest steps, so that the rest counts long enough. */
  takeFrom(words: Int32Array, at: number, id: number, amount: number, now: number, span: Span): void {
    const steps: { words: Int32Array; at: number; end: number }[] = [];
    this.#each(words, at, (chunk, place) => {
      const end = chunk[place + END]!;
      if (chunk[place + ID] === id && isOpen(end, now, span)) steps.push({ words: chunk, at: place, end });
    });
    let rest = amount;
    for (const step of steps.toSorted((one, other) => one.end - other.end)) {
      const taken = Math.min(rest, step.words[step.at + USED]!);
      step.words[step.at + USED]! -= taken;
      rest -= taken;
    }
  }

  /** Nothing was spent any more. */
  close(words: Int32Array, at: number): void {
    for (const { used, end } of SLOTS) {
      words[at + used] = 0;
      words[at + end] = 0;
    }
    this.#each(words, at, (chunk, place) => {
      chunk[place + END] = 0;
    });
  }

  /** Is none of them open, by whatever rules? */
  areOver(words: Int32Array, at: number, now: number): boolean {
    for (const { end } of SLOTS) if (words[at + end]! > now) return false;
    let over = true;
    this.#each(words, at, (chunk, place) => {
      if (chunk[place + END]! > now) over = false;
    });
    return over;
  }

  /** The windows of the chain that are open by whatever rules. */
  *chain(words: Int32Array, at: number, now: number): Generator<{ id: number; used: number; end: number }> {
    let chunk = words;
    for (let place = at + WINDOWS; ;) {
      if (chunk[place + END]! > now)
        yield { id: chunk[place + ID]!, used: chunk[place + USED]!, end: chunk[place + END]! };
      const next = chunk[place + NEXT]!;
      if (next === 0) return;
      chunk = this.#slab.chunk(next);
      place = next & CHUNK_MASK;
    }
  }

  /** Gives back what is not in the record itself. */
  giveBack(words: Int32Array, at: number): void {
    let address = words[at + WINDOWS + NEXT]!;
    while (address !== 0) {
      const next = this.#slab.chunk(address)[(address & CHUNK_MASK) + NEXT]!;
      this.#slab.giveWindow(address);
      address = next;
    }
  }

  #endOf(chunk: Int32Array, recordAt: number, id: number, now: number, span: Span): number {
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (;;) {
      if (words[at + ID] === id) return isOpen(words[at + END]!, now, span) ? words[at + END]! : 0;
      const next = words[at + NEXT]!;
      if (next === 0) return 0;
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
  }

  /** `address` 0: the first one, in the record. */
  #each(chunk: Int32Array, recordAt: number, see: Seen): void {
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (let address = 0; ;) {
      see(words, at, address);
      address = words[at + NEXT]!;
      if (address === 0) return;
      words = this.#slab.chunk(address);
      at = address & CHUNK_MASK;
    }
  }
}
