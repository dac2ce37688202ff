import { Worker } from 'node:worker_threads';

import { ThreadFeed } from '../../host/thread-feed.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { EngineError } from '../../lib/errors.ts';
import type { ArchiveSource, ContextEntry, FromWorker, Results, ToWorker, Work } from './archive-messages.ts';

/** A thread takes a few megabytes, so an idle one ends. */
const IDLE_TIMEOUT_MS = 10_000;
const LIMITS = { messageBytes: 128 * 1024, aheadBytes: 512 * 1024 };

/** Listeners of work before its end. They do not throw. */
type Listeners = {
  onProgress?: (bytes: number) => void;
  onEntries?: (entries: readonly ContextEntry[]) => void;
};

export type Given = Listeners & { signal?: AbortSignal | undefined };

type Task = Required<Listeners> & {
  work: Work;
  settle: PromiseWithResolvers<Results[Work['kind']]>;
  feed: ThreadFeed | undefined;
  wake: (() => void) | undefined;
  onOutput: (chunk: Uint8Array<ArrayBuffer>) => void;
};

/** One worker thread: several jobs at a time, identified by numbers. It ends after an idle time. */
export class ArchiveThread {
  readonly #worker: Worker;
  readonly #background: Background;
  readonly #onGone: () => void;
  readonly #tasks = new Map<number, Task>();
  #nextId = 0;
  #idle: Disposable | undefined;

  constructor(background: Background, onGone: () => void) {
    this.#background = background;
    this.#onGone = onGone;
    this.#worker = new Worker(new URL('archive-worker.ts', import.meta.url), {
      // The worker opens files by calls that Node does not track, and closes them itself.
      trackUnmanagedFds: false,
    });
    // The thread does not keep the process alive: every caller that waits for it has a connection open.
    this.#worker.on('message', (message: FromWorker) => this.#onMessage(message));
    this.#worker.once('error', (error) => this.#failAll(error));
    this.#worker.once('exit', () => this.#failAll(new Error('the archive thread has ended')));
  }

  get load(): number {
    return this.#tasks.size;
  }

  async perform(
    work: Work,
    stream: AsyncIterable<Uint8Array> | undefined,
    { signal, ...listeners }: Given,
  ): Promise<Results[Work['kind']]> {
    signal?.throwIfAborted();
    const { id, task } = this.#begin({ work, ...listeners });
    const stop = (): void => this.#send({ id, stop: true });
    signal?.addEventListener('abort', stop, { once: true });
    try {
      if (stream !== undefined) {
        task.feed = new ThreadFeed(LIMITS, (message, memory) =>
          this.#worker.postMessage({ id, ...message } satisfies ToWorker, [...memory]),
        );
        await task.feed.run(stream, task.settle.promise, signal);
      }
      return await task.settle.promise;
    } finally {
      signal?.removeEventListener('abort', stop);
      this.#end(id);
    }
  }

  async *read(source: ArchiveSource): AsyncGenerator<Buffer> {
    const arrived: Uint8Array<ArrayBuffer>[] = [];
    const { id, task } = this.#begin({
      work: { kind: 'read', source },
      onOutput: (chunk) => {
        arrived.push(chunk);
        task.wake?.();
      },
    });
    const settled = task.settle.promise.then(() => 'done' as const);
    try {
      for (;;) {
        const chunk = arrived.shift();
        if (chunk !== undefined) {
          yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
          this.#worker.postMessage({ id, taken: chunk.buffer } satisfies ToWorker, [chunk.buffer]);
          continue;
        }
        const more = new Promise<void>((resolve) => (task.wake = resolve));
        if ((await Promise.race([more, settled])) === 'done' && arrived.length === 0) return;
      }
    } finally {
      settled.catch(() => undefined); // a caller that has left is not told
      this.#send({ id, stop: true });
      this.#end(id);
    }
  }

  async terminate(): Promise<void> {
    this.#idle?.[Symbol.dispose]();
    await this.#worker.terminate();
  }

  #begin({ work, ...given }: { work: Work } & Partial<Task>): { id: number; task: Task } {
    this.#idle?.[Symbol.dispose]();
    this.#worker.ref();
    this.#nextId += 1;
    const id = this.#nextId;
    const task: Task = {
      work,
      onProgress: () => undefined,
      onEntries: () => undefined,
      settle: Promise.withResolvers(),
      feed: undefined,
      wake: undefined,
      onOutput: () => undefined,
      ...given,
    };
    this.#tasks.set(id, task);
    this.#send({ id, start: work });
    return { id, task };
  }

  #end(id: number): void {
    this.#tasks.delete(id);
    if (this.#tasks.size === 0) this.#rest();
  }

  #onMessage(message: FromWorker): void {
    if ('entries' in message) this.#send({ id: message.id, listed: true }); // also for a caller that has left
    const task = this.#tasks.get(message.id);
    if (task === undefined) return;
    if ('consumed' in message) {
      task.feed?.consumed(message.consumed);
    } else if ('output' in message) {
      task.onOutput(message.output);
    } else if ('entries' in message) {
      task.onEntries(message.entries);
    } else if ('progress' in message) {
      task.onProgress(message.progress);
    } else if ('result' in message) {
      task.settle.resolve(message.result);
    } else {
      task.settle.reject(errorFrom(message.failure));
    }
  }

  #failAll(error: unknown): void {
    this.#onGone();
    for (const task of this.#tasks.values()) task.settle.reject(error);
  }

  #rest(): void {
    this.#worker.unref();
    this.#idle = this.#background.after(IDLE_TIMEOUT_MS, 'end an idle archive thread', {}, async () => {
      this.#onGone();
      await this.#worker.terminate();
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message, []);
  }
}

function errorFrom({
  message,
  kind,
  code,
  syscall,
  stack,
}: Extract<FromWorker, { failure: unknown }>['failure']): Error {
  if (kind !== undefined) return new EngineError(kind, message);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new EngineError('failed', 'no space left on device');
  }
  return Object.assign(new Error(message), { code, syscall, stack });
}
