import type { RefusalNote } from '@gantry/limiter/types.ts';

/** Bans kept at most for workers that start later: these find out others by themselves. */
const MAX_BANS = 10_000;

/** The current bans, for workers that start later. */
export class Bans {
  /** The latest comes last. */
  readonly #notes = new Map<string, RefusalNote>();

  note(note: RefusalNote): void {
    if (note.bannedUntilSeconds === 0) return;
    this.#notes.delete(note.key);
    this.#notes.set(note.key, note);
    for (const [key, { bannedUntilSeconds }] of this.#notes) {
      if (bannedUntilSeconds > Date.now() / 1000 && this.#notes.size <= MAX_BANS) return;
      this.#notes.delete(key);
    }
  }

  forget(key: string): void {
    this.#notes.delete(key);
  }

  list(): RefusalNote[] {
    return [...this.#notes.values()].filter(({ bannedUntilSeconds }) => bannedUntilSeconds > Date.now() / 1000);
  }
}
