import { windowIdOf, windowName } from '../endpoints.ts';
import type { CallerState, Placed, WindowState } from '../types.ts';
import { addressOf, CallerTable } from './caller-table.ts';
import {
  UNDER_WAY,
  WINDOWS,
  CHANGED,
  MARK,
  ID,
  USED,
  END,
  NEXT,
  NO_WINDOW,
  EPOCH_SECONDS,
  CHUNK_MASK,
  FIXED_WINDOWS,
  spent,
  add,
  subtract,
} from './record.ts';
import { EMPTY, Slab } from './slab.ts';

const MOST_STEPS = 16;
const LOWEST = -(2 ** 31);

/** Of the records of all stores in this process. */
let lastMark = 0;

/** The callers that are remembered, and the windows of each. */
export class CallerRecords {
  readonly #slab = new Slab();
  readonly #records = new CallerTable();
  readonly #changed: string[] | undefined;
  /** Goes round through the numbers of the records, in search of those that are over. */
  #hand = 0;

  constructor(trackChanges: boolean) {
    this.#changed = trackChanges ? [] : undefined;
  }

  get size(): number {
    return this.#records.size;
  }

  /** The address of a caller's record, or of `EMPTY`. */
  find(key: string): number {
    return this.#records.find(key);
  }

  /** The same, and writes it down where `callerFrom` has left a place for it: the next decision need not look. */
  findAnew(key: string, caller: Placed | undefined): number {
    const address = this.#records.find(key);
    if (address === EMPTY || caller?.place === undefined || Object.isFrozen(caller)) return address;
    caller.place = address;
    caller.mark = this.#slab.chunk(address)[(address & CHUNK_MASK) + MARK]!;
    return address;
  }

  chunk(address: number): Int32Array {
    return this.#slab.chunk(address);
  }

  /** A record for a caller who has none. */
  insert(key: string, now: number): number {
    this.#forgetTwo(now);
    const record = this.#slab.takeRecord();
    const words = this.#slab.chunk(record);
    words[(record & CHUNK_MASK) + WINDOWS + ID] = NO_WINDOW;
    lastMark = lastMark <= LOWEST ? -1 : lastMark - 1;
    words[(record & CHUNK_MASK) + MARK] = lastMark;
    this.#records.insert(key, record);
    return record;
  }

  /** What was spent in one of the other windows of the caller at `recordAt` of `chunk`; 0 when it is not open. */
  spentOf(chunk: Int32Array, recordAt: number, id: number, now: number, seconds: number): number {
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (;;) {
      if (words[at + ID] === id) return spent(words, at + USED, at + END, now, seconds);
      const next = words[at + NEXT]!;
      if (next === 0) return 0;
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
  }

  endOf(chunk: Int32Array, recordAt: number, id: number): number {
    let words = chunk;
    let at = recordAt + WINDOWS;
    for (;;) {
      if (words[at + ID] === id) return words[at + END]!;
      const next = words[at + NEXT]!;
      if (next === 0) return 0;
      words = this.#slab.chunk(next);
      at = next & CHUNK_MASK;
    }
  }

  /** Adds to one of the caller's other windows and returns its address; takes the place of one that is over, if any. */
  addTo(record: number, id: number, amount: number, now: number, opened: number, seconds: number): number {
    let free = 0;
    let last = 0;
    for (let address = record + WINDOWS; address !== 0;) {
      const words = this.#slab.chunk(address);
      const at = address & CHUNK_MASK;
      if (words[at + ID] === id) {
        add(words, at + USED, at + END, amount, now, opened, seconds);
        return address;
      }
      if (free === 0 && words[at + END]! <= now) free = address;
      last = address;
      address = words[at + NEXT]!;
    }
    const address = free === 0 ? this.#slab.takeWindow() : free;
    const words = this.#slab.chunk(address);
    const at = address & CHUNK_MASK;
    words[at + ID] = id;
    words[at + USED] = amount;
    words[at + END] = opened + seconds;
    if (free === 0) {
      words[at + NEXT] = 0;
      this.#slab.chunk(last)[(last & CHUNK_MASK) + NEXT] = address;
    }
    return address;
  }

  /** Takes back from one of the caller's other windows, where it is open. */
  takeFrom(record: number, id: number, amount: number, now: number, seconds: number): void {
    for (let address = record + WINDOWS; address !== 0;) {
      const words = this.#slab.chunk(address);
      const at = address & CHUNK_MASK;
      if (words[at + ID] === id) return subtract(words, at + USED, at + END, amount, now, seconds);
      address = words[at + NEXT]!;
    }
  }

  /** A caller has spent nothing any more. The record stays: requests may be under way. */
  closeWindows(key: string): void {
    const record = this.find(key);
    if (record === EMPTY) return;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    for (const { used, end } of FIXED_WINDOWS) {
      words[at + used] = 0;
      words[at + end] = 0;
    }
    for (let address = record + WINDOWS; address !== 0;) {
      const others = this.#slab.chunk(address);
      others[(address & CHUNK_MASK) + END] = 0;
      address = others[(address & CHUNK_MASK) + NEXT]!;
    }
    this.markChanged(key, words, at);
  }

  /** Remembers for `takeChanged` that this caller's counts are other than they were. */
  markChanged(key: string, words: Int32Array, at: number): void {
    if (this.#changed === undefined) return;
    if (words[at + CHANGED] !== 0) return;
    words[at + CHANGED] = 1;
    this.#changed.push(key);
  }

  /** The states of the callers whose counts have changed since the last call. */
  takeChanged(now: number): CallerState[] {
    const keys = this.#changed?.splice(0) ?? [];
    return keys.map((key) => {
      const record = this.find(key);
      if (record !== EMPTY) this.#slab.chunk(record)[(record & CHUNK_MASK) + CHANGED] = 0;
      return this.stateOf(key, record, now);
    });
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore({ key, windows }: CallerState, now: number): void {
    const known = this.find(key);
    const record = known === EMPTY ? this.insert(key, now) : known;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    for (const { name, used, reset } of windows) {
      const end = reset - EPOCH_SECONDS;
      const place = FIXED_WINDOWS.find((fixed) => fixed.name === name);
      if (place !== undefined) {
        words[at + place.used] = Math.round(used * place.scale);
        words[at + place.end] = end;
        continue;
      }
      const id = windowIdOf(name);
      if (id !== undefined) this.addTo(record, id, used, now, end, 0);
    }
  }

  *states(now: () => number): Generator<CallerState> {
    // A caller who comes meanwhile is seen or not; nobody is seen twice.
    for (let number = 0; number < this.#records.numbers; number += 1) {
      const key = this.#records.keyAt(number);
      if (key === undefined) continue;
      const state = this.stateOf(key, addressOf(number), now());
      if (state.windows.length > 0 || state.underWay > 0) yield state;
    }
  }

  clear(): void {
    this.#records.clear();
  }

  stateOf(key: string, record: number, now: number): CallerState {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const windows: WindowState[] = [];
    for (const { name, used, end, scale } of FIXED_WINDOWS) {
      if (words[at + end]! <= now) continue;
      windows.push({ name, used: words[at + used]! / scale, reset: words[at + end]! + EPOCH_SECONDS });
    }
    for (let address = record + WINDOWS; address !== 0;) {
      const others = this.#slab.chunk(address);
      const place = address & CHUNK_MASK;
      const end = others[place + END]!;
      if (end > now) {
        const reset = end + EPOCH_SECONDS;
        windows.push({ name: windowName(others[place + ID]!), used: others[place + USED]!, reset });
      }
      address = others[place + NEXT]!;
    }
    return { key, underWay: words[at + UNDER_WAY]!, windows };
  }

  /** Looks at two numbers that are somebody's, and does not go far for them. */
  #forgetTwo(now: number): void {
    for (let looks = 0, steps = 0; looks < 2 && steps < MOST_STEPS; steps += 1) {
      this.#hand = this.#hand < this.#records.numbers ? this.#hand : 0;
      const key = this.#records.keyAt(this.#hand);
      const record = addressOf(this.#hand);
      this.#hand += 1;
      if (key === undefined) continue;
      looks += 1;
      if (!this.#isOver(record, now)) continue;
      this.#records.delete(key, record);
      this.#giveBack(record);
    }
  }

  #isOver(record: number, now: number): boolean {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    if (words[at + UNDER_WAY]! > 0 || words[at + CHANGED] !== 0) return false;
    for (const { end } of FIXED_WINDOWS) if (words[at + end]! > now) return false;
    for (let address = record + WINDOWS; address !== 0;) {
      const others = this.#slab.chunk(address);
      if (others[(address & CHUNK_MASK) + END]! > now) return false;
      address = others[(address & CHUNK_MASK) + NEXT]!;
    }
    return true;
  }

  #giveBack(record: number): void {
    let address = this.#slab.chunk(record)[(record & CHUNK_MASK) + WINDOWS + NEXT]!;
    while (address !== 0) {
      const next = this.#slab.chunk(address)[(address & CHUNK_MASK) + NEXT]!;
      this.#slab.giveWindow(address);
      address = next;
    }
    this.#slab.giveRecord(record);
  }
}
