import type { Caller, Endpoint, LimitedCaller, LimitName, Refusal, RefusalNote, ShownStatus } from '../types.ts';

type Entry = {
  note: RefusalNote;
  /** Refusals in a row, by all processes that share refusals. */
  refused: number;
  /** Refusals by this process. */
  own: number;
  lastSeconds: number;
};

type BanState = Readonly<{ refusedBy: LimitName; untilSeconds: number; shown: ShownStatus; refused: number }>;

type Ban = Readonly<{ refusals: number; withinSeconds: number; banSeconds: number }>;

/** A pause of this length ends a row of refusals where no ban is configured. */
const PAUSE_SECONDS = 60;

/** Limited callers remembered at most; the longest silent one is forgotten. */
const MAX_ENTRIES = 100_000;

/** The callers that this process refused lately, how often, and which of them are banned. */
export class LimitedCallers {
  /** In the order of the last refusal. */
  readonly #entries = new Map<string, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  /** Notes a refusal and returns how many there were in a row, this one included. */
  note(caller: Caller, endpoint: Endpoint, refusal: Omit<Refusal, 'repeated'>, nowSeconds: number, ban?: Ban): number {
    const { refusedBy, limit, used, remaining, reset, resource, windowSeconds } = refusal;
    if (refusedBy === undefined) return 1;
    const note = {
      key: caller.key,
      refusedBy,
      where: refusedBy === 'primary' ? endpoint.category : endpoint.name,
      untilSeconds: nowSeconds + refusal.retryAfterSeconds,
      bannedUntilSeconds: 0,
      shown: { limit, used, remaining, reset, resource, windowSeconds },
    };
    return this.#add(note, 1, nowSeconds, ban);
  }

  /** Notes what another process has refused. */
  noteElsewhere(note: RefusalNote, nowSeconds: number, ban?: Ban): void {
    this.#add(note, 0, nowSeconds, ban);
  }

  /** A caller's last refusal, for other processes. */
  noteOf(key: string): RefusalNote | undefined {
    return this.#entries.get(key)?.note;
  }

  /** The end of the ban and what the headers said last, when this caller is banned now. */
  ban(key: string, nowSeconds: number): BanState | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.note.bannedUntilSeconds <= nowSeconds) return undefined;
    entry.refused += 1;
    entry.own += 1;
    const { refusedBy, bannedUntilSeconds: untilSeconds, shown } = entry.note;
    return { refusedBy, untilSeconds, shown, refused: entry.refused };
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }

  list(nowSeconds: number): LimitedCaller[] {
    const limited: LimitedCaller[] = [];
    for (const { note, own } of this.#entries.values()) {
      const { key, refusedBy, where, untilSeconds, bannedUntilSeconds } = note;
      const banned = bannedUntilSeconds > nowSeconds;
      if (!banned && untilSeconds <= nowSeconds) continue;
      limited.push({
        key,
        refusedBy: banned ? 'ban' : refusedBy,
        where,
        untilSeconds: banned ? bannedUntilSeconds : untilSeconds,
        refused: own,
      });
    }
    return limited;
  }

  #add(note: RefusalNote, own: 0 | 1, nowSeconds: number, ban?: Ban): number {
    const { key } = note;
    const before = this.#entries.get(key);
    const pause = ban?.withinSeconds ?? PAUSE_SECONDS;
    const row = before !== undefined && nowSeconds - before.lastSeconds < pause ? before : undefined;
    const refused = (row?.refused ?? 0) + 1;
    const until = ban !== undefined && refused >= ban.refusals ? nowSeconds + ban.banSeconds : 0;
    // A late note from another process must not shorten the ban.
    const bannedUntilSeconds = Math.max(until, note.bannedUntilSeconds, row?.note.bannedUntilSeconds ?? 0);
    this.#entries.delete(key); // so that it comes last
    this.#entries.set(key, {
      note: bannedUntilSeconds === note.bannedUntilSeconds ? note : { ...note, bannedUntilSeconds },
      refused,
      own: (row?.own ?? 0) + own,
      lastSeconds: nowSeconds,
    });
    if (before === undefined) this.#forgetOld(nowSeconds, pause);
    return refused;
  }

  /** Looks at a few of the oldest for each new one: no timers, and never more than a few at once. */
  #forgetOld(nowSeconds: number, pause: number): void {
    let looks = 4;
    for (const [key, entry] of this.#entries) {
      const over =
        entry.note.untilSeconds <= nowSeconds &&
        entry.note.bannedUntilSeconds <= nowSeconds &&
        nowSeconds - entry.lastSeconds >= pause;
      if (over || this.#entries.size > MAX_ENTRIES) this.#entries.delete(key);
      looks -= 1;
      if (looks === 0) return;
    }
  }
}
