import type { Duplex } from 'node:stream';

import type { Container } from '../../containers/store.ts';
import { readContainerLog } from '../../containers/streams/logs.ts';
import { EngineError } from '../../lib/errors.ts';
import { logDriverOf } from '../../logs/drivers.ts';
import { logAttributes } from '../../logs/log-attributes.ts';
import type { Entry } from '../../logs/log-entry.ts';
import type { LogQuery } from '../../logs/log-file.ts';
import type { AgentNeeds } from '../agent/needs.ts';
import { containerOf } from '../agent/steps.ts';
import type { TaskStore } from '../agent/store.ts';
import { NotLeader, NotReached } from '../wire/client.ts';
import type { LogsMessage, PublishedLog } from '../wire/log-messages.ts';
import { SharedOutput } from './shared-output.ts';

/** Opens a connection to the leader for the lines of a request. */
export type OpenToLeader = (number: number) => Promise<Duplex>;
type Asked = LogsMessage['tasks'][number];

/** A line becomes about five times as long for the leader, and each reader has a chunk and its copy in TLS. */
const CHUNK_BYTES = 16 * 1024;
const UNREADABLE = 'configured logging driver does not support reading';

/** This node's part in reading logs: sends the lines of its tasks to the leader, no faster than they are read there. */
export class LogPublisher implements Disposable {
  readonly #engine: AgentNeeds;
  readonly #tasks: TaskStore;
  readonly #open: OpenToLeader;
  readonly #publications = new Map<number, Publication>();

  constructor(engine: AgentNeeds, tasks: TaskStore, open: OpenToLeader) {
    this.#engine = engine;
    this.#tasks = tasks;
    this.#open = open;
  }

  hear({ number, options, tasks }: LogsMessage): void {
    const current = this.#publications.get(number);
    if (current !== undefined) return current.add(tasks);
    const publication = new Publication(this.#engine, this.#tasks, options);
    this.#publications.set(number, publication);
    publication.add(tasks);
    this.#engine.background.run('send logs of tasks', {}, async () => {
      try {
        await publication.send(await this.#open(number));
      } catch (error) {
        const isOver = error instanceof NotLeader || error instanceof NotReached || error instanceof EngineError;
        if (!isOver) throw error; // else the reader has gone, or another leader asks anew
      } finally {
        if (this.#publications.get(number) === publication) this.#publications.delete(number);
      }
    });
  }

  [Symbol.dispose](): void {
    for (const publication of this.#publications.values()) publication[Symbol.dispose]();
    this.#publications.clear();
  }
}

/** The lines of this node's tasks for one reader. */
class Publication implements Disposable {
  readonly #engine: AgentNeeds;
  readonly #tasks: TaskStore;
  readonly #options: LogsMessage['options'];
  readonly #over = new AbortController();
  readonly #waiting: Asked[] = [];
  readonly #asked = new Set<string>();
  #output: SharedOutput | undefined;

  constructor(engine: AgentNeeds, tasks: TaskStore, options: LogsMessage['options']) {
    this.#engine = engine;
    this.#tasks = tasks;
    this.#options = options;
  }

  add(tasks: readonly Asked[]): void {
    const fresh = tasks.filter(({ id }) => !this.#asked.has(id));
    for (const { id } of fresh) this.#asked.add(id);
    const output = this.#output;
    if (output === undefined) {
      for (const task of fresh) this.#waiting.push(task);
      return;
    }
    this.#engine.background.run('send logs of later tasks', {}, async () => await this.#sendAll(fresh, output));
  }

  /** Resolves when all is sent, or the reader has gone. */
  async send(socket: Duplex): Promise<void> {
    const closed = Promise.withResolvers<void>();
    socket.once('close', () => {
      this.#over.abort();
      closed.resolve();
    });
    socket.resume(); // only to see its end
    if (this.#over.signal.aborted) return void socket.destroy();
    this.#over.signal.addEventListener('abort', () => socket.destroy(), { once: true });
    const output = new SharedOutput(socket);
    this.#output = output;
    await this.#sendAll(this.#waiting.splice(0), output);
    if (!this.#options.follow) {
      await output.write(lineOf({ say: 'sent' }));
      socket.end();
    }
    await closed.promise;
  }

  [Symbol.dispose](): void {
    this.#over.abort();
  }

  async #sendAll(tasks: readonly Asked[], output: SharedOutput): Promise<void> {
    await Promise.all(tasks.map(async (task) => await this.#sendOne(task, output)));
  }

  async #sendOne({ id, after }: Asked, output: SharedOutput): Promise<void> {
    const { signal } = this.#over;
    const { follow, stdout, stderr, since, tail = 'all' } = this.#options;
    const container = follow ? await this.#started(id) : this.#containerOf(id);
    if (container === undefined) return;
    const read = logDriverOf(container).reader?.(container);
    if (read === undefined) return await output.write(lineOf({ say: 'unreadable', task: id, reason: UNREADABLE }));
    const from = after === undefined ? since : after;
    const query: LogQuery = {
      ...{ stdout, stderr, timestamps: false, framed: false, details: undefined },
      chunkBytes: CHUNK_BYTES,
      encode: (entry) => Buffer.from(lineOf(messageOf(id, entry, logAttributes(container)))),
      tail: after === undefined ? tail : 'all',
      since:
        from === undefined ? undefined : Temporal.Instant.from(from).add({ nanoseconds: after === undefined ? 0 : 1 }),
    };
    for await (const piece of readContainerLog(this.#engine, { container, query, read }, follow, signal)) {
      if (signal.aborted) return;
      await output.write(piece);
    }
  }

  /** The container once it has been started; undefined when it never will be, or nobody reads any more. */
  async #started(id: string): Promise<Container | undefined> {
    const { promise, resolve } = Promise.withResolvers<Container | undefined>();
    let wasThere = false;
    const look = (): void => {
      const container = this.#containerOf(id);
      if (container !== undefined && container.state.status !== 'created') resolve(container);
      const isThere = this.#tasks.get(id) !== undefined;
      if (wasThere && !isThere) resolve(undefined);
      wasThere = isThere;
    };
    const stop = (): void => resolve(undefined);
    this.#over.signal.addEventListener('abort', stop, { once: true });
    using _listening = this.#engine.events.listen(look);
    look();
    if (this.#over.signal.aborted) stop();
    try {
      return await promise;
    } finally {
      this.#over.signal.removeEventListener('abort', stop);
    }
  }

  #containerOf(id: string): Container | undefined {
    const task = this.#tasks.get(id);
    return task === undefined ? undefined : containerOf(this.#engine, task);
  }
}

function messageOf(task: string, entry: Entry, own: Readonly<Record<string, string>>): PublishedLog {
  const attributes = Object.keys(entry.attributes).length > 0 ? entry.attributes : own;
  const stream = entry.isStdout ? 'stdout' : 'stderr';
  return { say: 'line', task, stream, time: entry.time, attributes, text: entry.text.toString('base64') };
}

function lineOf(message: PublishedLog): string {
  return `${JSON.stringify(message)}\n`;
}
