import { Worker } from 'node:worker_threads';

import { bytesPassed, giveBackMemory } from '../../host/memory.ts';
import type { Background } from '../../lib/background.ts';
import { EngineError } from '../../lib/errors.ts';
import type { ArchiveSource, FromWorker, Results, ToWorker, Work } from './archive-messages.ts';

/** A thread takes a few megabytes, so an idle one ends. */
const IDLE_MILLISECONDS = 10_000;
const TIDY_MILLISECONDS = 50;
const CHUNK_BYTES = 128 * 1024;
/** The number of chunks on their way to a thread at which the sender waits, and with it the client. */
const CHUNKS_AHEAD = 4;

type Task = {
  work: Work;
  onProgress: (bytes: number) => void;
  settle: PromiseWithResolvers<Results[Work['kind']]>;
  /** Chunks sent but not yet consumed. */
  ahead: number;
  /** Memory of consumed chunks, to be reused. */
  spare: ArrayBuffer[];
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
  #tidy: Disposable | undefined;

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
    onProgress: (bytes: number) => void,
  ): Promise<Results[Work['kind']]> {
    const { id, task } = this.#begin({ work, onProgress });
    try {
      if (stream !== undefined) await this.#feed(id, task, stream);
      return await task.settle.promise;
    } finally {
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
    this.#tidy?.[Symbol.dispose]();
    await this.#worker.terminate();
  }

  #begin({ work, ...given }: { work: Work } & Partial<Task>): { id: number; task: Task } {
    this.#idle?.[Symbol.dispose]();
    this.#tidyUp();
    this.#worker.ref();
    this.#nextId += 1;
    const id = this.#nextId;
    const task: Task = {
      work,
      onProgress: () => undefined,
      settle: Promise.withResolvers(),
      ahead: 0,
      spare: [],
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

  /** Sends the stream in chunks of a good size, and waits when the thread is behind. */
  async #feed(id: number, task: Task, stream: AsyncIterable<Uint8Array>): Promise<void> {
    // Failed work takes no more bytes, and its sender must not wait for room.
    const refused = new AbortController();
    const settled = task.settle.promise.then(
      () => refused.abort(),
      () => refused.abort(),
    );
    let chunk = emptyChunk(task);
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (bytes === 0) return;
      await this.#pass(id, task, chunk.subarray(0, bytes), settled);
      chunk = emptyChunk(task);
      bytes = 0;
    };
    try {
      for await (const piece of stream) {
        for (let at = 0; at < piece.length;) {
          const part = piece.subarray(at, at + CHUNK_BYTES - bytes);
          chunk.set(part, bytes);
          bytes += part.length;
          at += part.length;
          if (bytes === CHUNK_BYTES) await flush();
        }
        if (refused.signal.aborted) return;
      }
      await flush();
    } catch (error) {
      this.#send({
        id,
        end: { failure: `the upload broke off: ${error instanceof Error ? error.message : 'unknown'}` },
      });
      return;
    }
    this.#send({ id, end: {} });
  }

  /** Sends a chunk, and waits until there is room for the next one. */
  async #pass(id: number, task: Task, chunk: Uint8Array<ArrayBuffer>, settled: Promise<void>): Promise<void> {
    this.#worker.postMessage({ id, chunk } satisfies ToWorker, [chunk.buffer]);
    task.ahead += 1;
    bytesPassed(CHUNK_BYTES);
    if (task.ahead < CHUNKS_AHEAD) return;
    const room = new Promise<void>((resolve) => (task.wake = resolve));
    await Promise.race([room, settled]);
  }

  #onMessage(message: FromWorker): void {
    const task = this.#tasks.get(message.id);
    if (task === undefined) return;
    if ('consumed' in message) {
      task.ahead -= 1;
      task.spare.push(message.consumed);
      task.wake?.();
    } else if ('output' in message) {
      task.onOutput(message.output);
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

  /** While there is work: the start of a thread, and much else on the way, touches memory that is of no use any more. */
  #tidyUp(): void {
    this.#tidy ??= this.#background.after(TIDY_MILLISECONDS, 'give memory back', {}, () => {
      this.#tidy = undefined;
      giveBackMemory();
      if (this.#tasks.size > 0) this.#tidyUp();
    });
  }

  #rest(): void {
    this.#worker.unref();
    this.#idle = this.#background.after(IDLE_MILLISECONDS, 'end an idle archive thread', {}, async () => {
      this.#onGone();
      await this.#worker.terminate();
      giveBackMemory();
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message, []);
  }
}

function emptyChunk({ spare }: Task): Uint8Array<ArrayBuffer> {
  return new Uint8Array(spare.pop() ?? new ArrayBuffer(CHUNK_BYTES));
}

function errorFrom({ message, kind, code, stack }: Extract<FromWorker, { failure: unknown }>['failure']): Error {
  if (kind !== undefined) return new EngineError(kind, message);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new EngineError('failed', `no space left on device: ${message}`);
  }
  return Object.assign(new Error(message), { code, stack });
}
