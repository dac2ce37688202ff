import type { Endpoints } from '../endpoints.ts';
import type { Ask, CallerState, WindowState } from '../types.ts';
import { addressOf, CallerTable } from './caller-table.ts';
import { NotedAddress } from './noted-address.ts';
import { CHANGED, CHUNK_MASK, EPOCH_SECONDS, ID, NO_WINDOW, SLOTS, UNDER_WAY, WINDOWS } from './record.ts';
import { EMPTY, Slab } from './slab.ts';
import { Windows } from './windows.ts';

const MAX_STEPS = 16;

/** A window as it is written down: each step of a sliding one by itself. */
export type StoredWindow = WindowState & Readonly<{ step?: true }>;
export type StoredCaller = Readonly<{ key: string; windows: readonly StoredWindow[] }>;

type Asking = Pick<Ask, 'key' | 'caller'>;

/** The callers that are remembered. */
export class CallerRecords {
  readonly #endpoints: Endpoints;
  readonly #slab = new Slab();
  readonly windows = new Windows(this.#slab);
  readonly #records = new CallerTable();
  readonly #changed: string[] | undefined;
  /** Cycles through the numbers of the records, in search of those that are over. */
  #hand = 0;

  constructor(endpoints: Endpoints, trackChanges: boolean) {
    this.#endpoints = endpoints;
    this.#changed = trackChanges ? [] : undefined;
  }

  get size(): number {
    return this.#records.size;
  }

  /** The address of a caller's record, or of `EMPTY`. */
  find(key: string): number {
    return this.#records.find(key);
  }

  /**
   * Finds the record of a caller that asks. Its place is noted for the next time, so not at the first request: a caller that
   * comes once costs no note.
   */
  findAsking({ key, caller }: Asking): number {
    if (caller === undefined) return this.#records.find(key);
    const noted = NotedAddress.of(caller);
    if (this.#records.isAt(noted, key)) return noted;
    const found = this.#records.find(key);
    if (found !== EMPTY) NotedAddress.note(caller, found);
    return found;
  }

  chunk(address: number): Int32Array {
    return this.#slab.chunk(address);
  }

  /** A record for a caller who has none. */
  insert(key: string, now: number): number {
    this.#forgetTwo(now);
    const record = this.#slab.takeRecord();
    this.#slab.chunk(record)[(record & CHUNK_MASK) + WINDOWS + ID] = NO_WINDOW;
    this.#records.insert(key, record);
    return record;
  }

  /** Forgets what a caller has spent. The record stays: requests may be under way. */
  closeWindows(key: string): void {
    const record = this.find(key);
    if (record === EMPTY) return;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    this.windows.close(words, at);
    this.markChanged(key, words, at);
  }

  /** Remembers for `takeChanged` that this caller's counts have changed. */
  markChanged(key: string, words: Int32Array, at: number): void {
    if (this.#changed === undefined) return;
    if (words[at + CHANGED] !== 0) return;
    words[at + CHANGED] = 1;
    this.#changed.push(key);
  }

  /** Returns the callers whose counts have changed since the last call, for a store. */
  takeChanged(now: number): StoredCaller[] {
    const keys = this.#changed?.splice(0) ?? [];
    return keys.map((key) => {
      const record = this.find(key);
      if (record !== EMPTY) this.#slab.chunk(record)[(record & CHUNK_MASK) + CHANGED] = 0;
      return { key, windows: this.#windowsOf(record, now) };
    });
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore({ key, windows }: StoredCaller, now: number): void {
    const known = this.find(key);
    const record = known === EMPTY ? this.insert(key, now) : known;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    for (const { name, used, reset, step } of windows) {
      const end = reset - EPOCH_SECONDS;
      const slot = SLOTS.find((one) => one.name === name);
      if (slot !== undefined && step === undefined) {
        words[at + slot.used] = Math.round(used * slot.scale);
        words[at + slot.end] = end;
        continue;
      }
      const id = slot?.id ?? this.#endpoints.windowId(name);
      if (id !== undefined) this.windows.put(words, at, id, Math.round(used * (slot?.scale ?? 1)), end, now);
    }
  }

  *states(now: () => number): Generator<CallerState> {
    // A caller that is added meanwhile may be missed; no caller is seen twice.
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
    const underWay = this.#slab.chunk(record)[(record & CHUNK_MASK) + UNDER_WAY]!;
    return { key, underWay, windows: this.#windowsOf(record, now) };
  }

  #windowsOf(record: number, now: number): StoredWindow[] {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const windows: StoredWindow[] = [];
    for (const { name, used, end, scale } of SLOTS) {
      if (words[at + end]! <= now) continue;
      windows.push({ name, used: words[at + used]! / scale, reset: words[at + end]! + EPOCH_SECONDS });
    }
    for (const { id, used, end } of this.windows.chain(words, at, now)) {
      const reset = end + EPOCH_SECONDS;
      const slot = SLOTS.find((one) => one.id === id);
      if (slot === undefined) windows.push({ name: this.#endpoints.windowName(id), used, reset });
      else windows.push({ name: slot.name, used: used / slot.scale, reset, step: true });
    }
    return windows;
  }

  /** Checks two records in use, without a long search for them. */
  #forgetTwo(now: number): void {
    for (let looks = 0, steps = 0; looks < 2 && steps < MAX_STEPS; steps += 1) {
      this.#hand = this.#hand < this.#records.numbers ? this.#hand : 0;
      const key = this.#records.keyAt(this.#hand);
      const record = addressOf(this.#hand);
      this.#hand += 1;
      if (key === undefined) continue;
      looks += 1;
      const words = this.#slab.chunk(record);
      const at = record & CHUNK_MASK;
      if (words[at + UNDER_WAY]! > 0 || words[at + CHANGED] !== 0 || !this.windows.areOver(words, at, now)) continue;
      this.#records.delete(key, record);
      this.windows.giveBack(words, at);
      this.#slab.giveRecord(record);
    }
  }
}
