import { eachSecond } from './links/connection.ts';
import type { Link } from './links/link.ts';
import { linkTo, type RedisStoreOptions } from './options.ts';
import { Patience } from './patience.ts';

/** The answer of Redis where there is no value. */
const EMPTY = '{}';
const READ = `return cjson.encode(redis.call('HGETALL', KEYS[1]))`;

type Options = Pick<RedisStoreOptions, 'url' | 'sentinels' | 'cluster' | 'tls' | 'prefix' | 'timeoutMs'>;

/**
 * A few texts by their names that all processes on one Redis share. They are looked at each second: a process that was
 * cut off, or has just begun, needs no more than that. Troubles are those of the store, which reports them.
 */
export class SharedValues implements Disposable {
  readonly #link: Link;
  readonly #patience: Patience;
  readonly #key: string;
  readonly #changed: () => void;
  readonly #looking: Disposable;
  /** The answer to the last `read`, as it came. */
  #text = EMPTY;

  /** `changed` is called while the values differ from those that were read last. */
  constructor({ prefix = 'gantry:', timeoutMs = 500, ...servers }: Options, name: string, changed: () => void) {
    this.#key = `${prefix}${name}`;
    this.#changed = changed;
    this.#patience = new Patience(timeoutMs);
    this.#link = linkTo(servers, { heard: () => undefined, troubled: () => undefined });
    this.#link.connect().then(
      () => void this.#look(),
      () => undefined, // closed before it was there
    );
    this.#looking = eachSecond(() => void this.#look());
  }

  /** Stores a value for all; undefined removes it. Rejects when Redis does not answer. */
  async set(name: string, value: string | undefined): Promise<void> {
    const command = value === undefined ? ['HDEL', this.#key, name] : ['HSET', this.#key, name, value];
    await this.#send(command);
  }

  /** All values. Rejects when Redis does not answer. */
  async read(): Promise<Map<string, string>> {
    const text = String(await this.#send(['EVAL', READ, '1', this.#key]));
    const values = pairsIn(text);
    this.#text = text;
    return values;
  }

  [Symbol.dispose](): void {
    this.#looking[Symbol.dispose]();
    this.#patience[Symbol.dispose]();
    this.#link[Symbol.dispose]();
  }

  async #send(command: readonly string[]): Promise<Buffer | number> {
    if (!this.#link.isThere(this.#key)) throw new Error('redis is not connected');
    return await this.#patience.within(this.#link.send<Buffer | number>(this.#key, command));
  }

  async #look(): Promise<void> {
    try {
      const text = String(await this.#send(['EVAL', READ, '1', this.#key]));
      if (text !== this.#text) this.#changed();
    } catch {
      // The next look tells.
    }
  }
}

/** Names and values in turn; Redis has another form for none. */
function pairsIn(text: string): Map<string, string> {
  const list: unknown = JSON.parse(text);
  const texts = Array.isArray(list) ? list.map(String) : [];
  return new Map(texts.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, texts[at + 1] ?? '']] : [])));
}
