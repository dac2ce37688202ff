import { randomBytes } from 'node:crypto';

import type { Progress } from '../../images/progress/progress.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Warning } from '../frontend/checks/linter.ts';
import { textOf } from '../frontend/errors.ts';
import { timeOf, type Time } from '../messages/common.ts';
import { CANCELED, type StatusQueue } from './status-queue.ts';

/** The beginning of failures that only the whole build has. */
const CACHE_KEY = /^failed to compute cache key: /;

/** One line of the progress that a client shows: it begins, writes, and ends. */
export class Vertex {
  readonly digest = `sha256:${randomBytes(32).toString('hex')}`;
  readonly #queue: StatusQueue;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #inputs: readonly string[];
  readonly #begun = new Map<string, Time>();
  #started: Time | undefined;
  #isCached = false;

  /** `inputs`: the digests of those that it builds on. */
  constructor(queue: StatusQueue, clock: Clock, name: string, inputs: readonly string[] = []) {
    this.#queue = queue;
    this.#clock = clock;
    this.#name = name;
    this.#inputs = inputs;
    this.#push({});
  }

  start(): this {
    this.#started = this.#now();
    this.#push({});
    return this;
  }

  useCache(): void {
    this.#isCached = true;
  }

  complete(): void {
    this.#push({ completed: this.#now() });
  }

  fail(error: unknown): void {
    this.#push({ completed: this.#now(), error: textOf(error).replace(CACHE_KEY, '') });
  }

  /** It ends because of another one. */
  cancel(): void {
    this.#push({ completed: this.#now(), error: CANCELED });
  }

  /** Runs as this vertex. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.start();
    try {
      const result = await work();
      this.complete();
      return result;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  /** `stream`: 1 for stdout, 2 for stderr. */
  log(text: string, stream: 1 | 2): void {
    const bytes = Buffer.from(text);
    this.#queue.push({ logs: [{ vertex: this.digest, timestamp: this.#now(), stream, text: bytes }] }, bytes.length);
  }

  warn(text: string): void {
    this.#queue.push({ warnings: [{ vertex: this.digest, level: 1, short: Buffer.from(text) }] });
  }

  /** A warning of the checks, which clients count and show at the end. */
  readonly warnOf = ({ rule, detail, place }: Warning): void => {
    const short = Buffer.from(`${rule.name}: ${detail} (line ${place.number})`);
    const detailed = { detail: [Buffer.from(rule.description)], url: rule.url };
    this.#queue.push({ warnings: [{ vertex: this.digest, level: 1, short, ...detailed }] });
  };

  /** Bytes of something, such as a transfer. `total`: 0 if it is unknown. */
  status(id: string, current: number, total: number, isOver: boolean): void {
    const timestamp = this.#now();
    const started = this.#begun.getOrInsert(id, timestamp);
    const completed = isOver ? { completed: timestamp } : {};
    this.#queue.push({
      statuses: [{ id, vertex: this.digest, name: id, current, total, timestamp, started, ...completed }],
    });
  }

  /** A line of a pull. */
  readonly report = ({ id, status, progressDetail }: Progress): void => {
    if (id === undefined || status === undefined) return;
    const { current = 0, total = 0 } = progressDetail ?? {};
    this.status(id, current, total, /complete|exists/i.test(status) && !/verifying/i.test(status));
  };

  #push(more: { completed?: Time; error?: string }): void {
    this.#queue.push({
      vertexes: [
        {
          digest: this.digest,
          name: this.#name,
          inputs: this.#inputs,
          cached: this.#isCached,
          ...(this.#started !== undefined && { started: this.#started }),
          ...more,
        },
      ],
    });
  }

  #now(): Time {
    return timeOf(this.#clock.now());
  }
}
