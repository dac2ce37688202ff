/** Events of the servers, whether or not a caller waits for an answer. */
export type LinkEvents = Readonly<{
  /** A server has said something. */
  heard(): void;
  troubled(error: unknown): void;
}>;

export type Entry = readonly [key: string, value: Buffer | null];

/**
 * The way to the servers that hold the counts: to one of them (`single-link.ts`), to the one that sentinels name
 * (`sentinel-link.ts`), or to all of a cluster (`cluster-link.ts`). Nothing is queued for a server that is away.
 */
export interface Link extends Disposable {
  /** Resolves with the first connection. Tries on until then. */
  connect(): Promise<void>;
  /** May the server of this key be asked now? */
  isThere(key: string): boolean;
  /** Rejects with what the server says, or when the connection ends. */
  send<T>(key: string, command: readonly string[]): Promise<T>;
  /** The server of this key has not answered in time: it counts as away until it says something. */
  noAnswer(key: string): void;
  /** Keys that match the pattern, with their values, a page at a time. */
  entries(pattern: string): AsyncGenerator<readonly Entry[]>;
  publish(channel: string, message: string): Promise<void>;
  /** Hears what is published, also from servers that take over later. */
  subscribe(channel: string, listener: (message: string) => void): void;
}
