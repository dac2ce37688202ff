import type { Caller, Endpoint, LimitedCaller, LimitName, RateStatus, Refusal } from './types.ts';

type Entry = {
  refusedBy: LimitName;
  where: string;
  untilSeconds: number;
  /** Refusals without a pause. */
  refused: number;
  lastSeconds: number;
  bannedUntilSeconds: number;
  /** What the headers said last; a ban is answered without asking the store. */
  shown: RateStatus;
};

type Ban = Readonly<{ refusals: number; withinSeconds: number; banSeconds: number }>;

/** A pause of this length ends a row of refusals where no ban is configured. */
const PAUSE_SECONDS = 60;

/** More limited callers than this are not remembered each; the longest silent one is forgotten. */
const MOST_ENTRIES = 100_000;

/** Who was refused lately by this process, how often, and who is banned for it. */
export class LimitedCallers {
  /** In the order of the last refusal. */
  readonly #entries = new Map<string, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  /** Notes a refusal and returns how many there were in a row, this one included. */
  note(caller: Caller, endpoint: Endpoint, refusal: Omit<Refusal, 'repeated'>, nowSeconds: number, ban?: Ban): number {
    const { refusedBy } = refusal;
    if (refusedBy === undefined) return 1;
    const before = this.#entries.get(caller.key);
    const pause = ban?.withinSeconds ?? PAUSE_SECONDS;
    const inARow = before !== undefined && nowSeconds - before.lastSeconds < pause;
    const refused = inARow ? before.refused + 1 : 1;
    const banned = ban !== undefined && refused >= ban.refusals;
    this.#entries.delete(caller.key); // so that it comes last
    this.#entries.set(caller.key, {
      refusedBy,
      where: refusedBy === 'primary' ? endpoint.category : endpoint.name,
      untilSeconds: nowSeconds + refusal.retryAfterSeconds,
      refused,
      lastSeconds: nowSeconds,
      bannedUntilSeconds: banned ? nowSeconds + ban.banSeconds : 0,
      shown: { limit: refusal.limit, used: refusal.used, remaining: refusal.remaining, reset: refusal.reset },
    });
    this.#forgetOld(nowSeconds, pause);
    return refused;
  }

  /** The end of the ban and what the headers said last, when this caller is banned now. */
  ban(key: string, nowSeconds: number): { untilSeconds: number; shown: RateStatus; refused: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.bannedUntilSeconds <= nowSeconds) return undefined;
    entry.refused += 1;
    return { untilSeconds: entry.bannedUntilSeconds, shown: entry.shown, refused: entry.refused };
  }

  list(nowSeconds: number): LimitedCaller[] {
    const limited: LimitedCaller[] = [];
    for (const [key, entry] of this.#entries) {
      const banned = entry.bannedUntilSeconds > nowSeconds;
      if (!banned && entry.untilSeconds <= nowSeconds) continue;
      limited.push({
        key,
        refusedBy: banned ? 'ban' : entry.refusedBy,
        where: entry.where,
        untilSeconds: banned ? entry.bannedUntilSeconds : entry.untilSeconds,
        refused: entry.refused,
      });
    }
    return limited;
  }

  /** Looks at a few of the oldest for each new one: no timers, and never more than a few at once. */
  #forgetOld(nowSeconds: number, pause: number): void {
    let looks = 4;
    for (const [key, entry] of this.#entries) {
      const over =
        entry.untilSeconds <= nowSeconds &&
        entry.bannedUntilSeconds <= nowSeconds &&
        nowSeconds - entry.lastSeconds >= pause;
      if (over || this.#entries.size > MOST_ENTRIES) this.#entries.delete(key);
      looks -= 1;
      if (looks === 0) return;
    }
  }
}
