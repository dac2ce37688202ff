const MB = 1024 * 1024;

/** Limits of what one side of a session sends. */
export type ChannelLimits = Readonly<{
  maxLineLetters: number;
  maxValues: number;
  /** Bytes that are read at once; more of them become free with time. */
  burstBytes: number;
  bytesPerSecond: number;
}>;

export const FROM_NODE_LIMITS: ChannelLimits = {
  maxLineLetters: 2 * MB,
  maxValues: 200_000,
  burstBytes: 16 * MB,
  bytesPerSecond: 2 * MB,
};

/** A leader tells a node all of its tasks and networks. */
export const FROM_LEADER_LIMITS: ChannelLimits = {
  maxLineLetters: 8 * MB,
  maxValues: 1_000_000,
  burstBytes: 64 * MB,
  bytesPerSecond: 16 * MB,
};

/** Bytes that may still be read from the other side of a session. */
export class Allowance {
  readonly #limits: ChannelLimits;
  #bytes: number;
  #atMs = performance.now();

  constructor(limits: ChannelLimits) {
    this.#limits = limits;
    this.#bytes = limits.burstBytes;
  }

  /** Takes so many bytes; returns the milliseconds until the next may be read. */
  take(bytes: number, nowMs = performance.now()): number {
    const { burstBytes, bytesPerSecond } = this.#limits;
    const fresh = ((nowMs - this.#atMs) / 1000) * bytesPerSecond;
    this.#bytes = Math.min(burstBytes, this.#bytes + fresh) - bytes;
    this.#atMs = nowMs;
    return Math.max(0, (-this.#bytes / bytesPerSecond) * 1000);
  }
}
