import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

import { collectYoung } from '../host/garbage.ts';
import { ThreadFeed } from '../host/thread-feed.ts';
import type { Background } from '../lib/concurrency/background.ts';
import { EngineError } from '../lib/errors.ts';
import type {
  Failure,
  Folder,
  FromWorker,
  PathStat,
  PlaceOptions,
  Results,
  ToWorker,
  ViewRequest,
  Work,
  WorkerData,
} from './messages.ts';
import type { Archived, ArchivedTransfer } from './transfer/from-archive.ts';
import type { SourceFound, SourcesWanted } from './transfer/sources.ts';
import type { Transfer } from './transfer/transfer.ts';

/** Threads that answer: each takes 20 MB while it works. */
const ANSWERING_THREADS = 2;
/** With those that wait for a file system that does not answer. */
const MAX_THREADS = 4;
const STALLED_MS = 1000;
/** A thread takes a few megabytes, so an idle one ends. */
const IDLE_TIMEOUT_MS = 10_000;
/** The chunks of an archive are allocated outside of the heap; left alone, the collector would come late. */
const CHUNKS_PER_COLLECTION = 64;
const LIMITS = { messageBytes: 256 * 1024, aheadBytes: 2 * 1024 * 1024 };

/** Takes a chunk, and resolves when its memory may be used again. */
export type TakeChunk = (chunk: Uint8Array) => Promise<void>;

type Task = {
  kind: Work['kind'];
  settle: PromiseWithResolvers<Results[Work['kind']]>;
  take: TakeChunk | undefined;
  taking: Promise<void>;
  feed: ThreadFeed | undefined;
};

/** Copies files out of containers and into them, in threads that see only a view of the container. */
export class Copies implements AsyncDisposable {
  readonly #background: Background;
  readonly #hidden: string;
  readonly #threads: CopyThread[] = [];

  /** `hidden`: the folder of the containers' roots. */
  constructor(background: Background, hidden: string) {
    this.#background = background;
    this.#hidden = hidden;
  }

  /** The mount that another process sees at this path, as a descriptor of this process. */
  async borrow(pid: number, path: string): Promise<number> {
    return (await this.#leastBusy().perform({ kind: 'borrow', pid, path })) as number;
  }

  /** Changes of a writable layer against the layers below, topmost first; as the JSON that clients get. */
  async changes(upper: string, lower: readonly string[]): Promise<Buffer> {
    const json = (await this.#leastBusy().perform({ kind: 'changes', upper, lower })) as Uint8Array<ArrayBuffer>;
    return Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  }

  /** The files of the sources of a COPY in this root, with their checksums; `signal` ends it. Throws `invalid`. */
  async findSources(root: string, wanted: SourcesWanted, signal: AbortSignal): Promise<SourceFound[]> {
    signal.throwIfAborted();
    return (await this.#leastBusy().perform({ kind: 'findSources', root, wanted }, { signal })) as SourceFound[];
  }

  async open(view: ViewRequest): Promise<OpenView> {
    const thread = this.#leastBusy();
    thread.views += 1; // before it is open: an idle thread ends
    try {
      return new OpenView(thread, (await thread.perform({ kind: 'open', view })) as number);
    } catch (error) {
      thread.forgetView();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.splice(0).map(async (thread) => await thread.terminate()));
  }

  #leastBusy(): CopyThread {
    const answering = this.#threads.filter((each) => !each.isStalled);
    const isFull = answering.length >= ANSWERING_THREADS || this.#threads.length >= MAX_THREADS;
    const [idlest] = (answering.length > 0 ? answering : this.#threads).toSorted((a, b) => a.load - b.load);
    if (idlest !== undefined && (idlest.load === 0 || isFull)) return idlest;
    const thread = new CopyThread(this.#background, { hidden: this.#hidden }, () => {
      const at = this.#threads.indexOf(thread);
      if (at >= 0) this.#threads.splice(at, 1);
    });
    this.#threads.push(thread);
    return thread;
  }
}

/** A container's files, as long as it is not disposed. */
export class OpenView implements AsyncDisposable {
  readonly #thread: CopyThread;
  readonly #view: number;

  constructor(thread: CopyThread, view: number) {
    this.#thread = thread;
    this.#view = view;
  }

  async stat(path: string): Promise<PathStat> {
    return (await this.#thread.perform({ kind: 'stat', view: this.#view, path })) as PathStat;
  }

  /** Entries of a folder, at most 10,000; `signal` ends it early. Throws `invalid` for anything but a folder. */
  async list(path: string, signal: AbortSignal): Promise<Folder> {
    signal.throwIfAborted();
    return (await this.#thread.perform({ kind: 'list', view: this.#view, path }, { signal })) as Folder;
  }

  /** A path as an archive, or the whole root; `signal` ends it early, and then it throws. */
  async pack(path: string | undefined, take: TakeChunk, signal: AbortSignal): Promise<void> {
    await this.#thread.perform({ kind: 'pack', view: this.#view, path }, { take, signal });
  }

  /** Copies files of another root; `signal` ends it in the middle. */
  async transfer(transfer: Transfer, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#thread.perform({ kind: 'transfer', view: this.#view, transfer }, { signal });
  }

  /** Copies files of an archive; `signal` ends it in the middle. */
  async transferFromArchive(archived: Archived, transfer: ArchivedTransfer, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const work = { kind: 'transferFromArchive', view: this.#view, archived, transfer } as const;
    await this.#thread.perform(work, { signal });
  }

  /** Creates a folder with its parents; existing ones stay. */
  async makeFolder(path: string, owner = { uid: 0, gid: 0 }): Promise<void> {
    await this.#thread.perform({ kind: 'makeFolder', view: this.#view, path, owner });
  }

  /** Puts the files of an archive, compressed or not, into a folder; `signal` breaks it off, and then it throws. */
  async place(options: PlaceOptions, archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    await this.#thread.perform({ kind: 'place', view: this.#view, options }, { archive, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#thread.views -= 1;
    await this.#thread.closeView(this.#view);
  }
}

type Streams = { take?: TakeChunk; archive?: AsyncIterable<Uint8Array>; signal?: AbortSignal };

class CopyThread {
  readonly #worker: Worker;
  readonly #background: Background;
  readonly #onGone: () => void;
  readonly #tasks = new Map<number, Task>();
  /** An open view belongs to its thread. */
  views = 0;
  #lastId = 0;
  #end: unknown;
  #taken = 0;
  /** The time of the first message that the thread has not answered yet. */
  #unansweredSince: number | undefined;
  #idle: Disposable | undefined;

  constructor(background: Background, workerData: WorkerData, onGone: () => void) {
    this.#background = background;
    this.#onGone = onGone;
    this.#worker = new Worker(new URL('copies-worker.ts', import.meta.url), {
      workerData,
      // The worker opens files by calls that Node does not track, and closes them itself.
      trackUnmanagedFds: false,
    });
    this.#worker.on('message', (message: FromWorker) => this.#onMessage(message));
    this.#worker.once('error', (error) => this.#failAll(error));
    this.#worker.once('exit', () => this.#failAll(new Error('the thread for copies has ended')));
  }

  /** A view that is being closed counts no more: a warm thread is faster than a new one. */
  get load(): number {
    let load = this.views;
    for (const { kind } of this.#tasks.values()) if (kind !== 'close') load += 1;
    return load;
  }

  /** It waits for a file system that does not answer, or is about to. */
  get isStalled(): boolean {
    return this.#unansweredSince !== undefined && performance.now() - this.#unansweredSince > STALLED_MS;
  }

  async perform(work: Work, { take, archive, signal }: Streams = {}): Promise<Results[Work['kind']]> {
    if (this.#end !== undefined) throw this.#end;
    this.#idle?.[Symbol.dispose]();
    this.#worker.ref();
    this.#lastId += 1;
    const id = this.#lastId;
    const feed =
      archive === undefined
        ? undefined
        : new ThreadFeed(LIMITS, (message, memory) => this.#send({ id, ...message }, memory));
    const task: Task = { kind: work.kind, settle: Promise.withResolvers(), take, taking: Promise.resolve(), feed };
    const stop = (): void => this.#send({ id, stop: true });
    signal?.addEventListener('abort', stop, { once: true });
    this.#tasks.set(id, task);
    this.#send({ id, start: work });
    try {
      if (feed !== undefined) await feed.run(archive!, task.settle.promise, signal);
      const result = await task.settle.promise;
      await task.taking;
      return result;
    } finally {
      signal?.removeEventListener('abort', stop);
      this.#tasks.delete(id);
      if (this.#tasks.size === 0 && this.views === 0) this.#rest();
    }
  }

  /** The thread's views end with it. */
  async closeView(view: number): Promise<void> {
    if (this.#end === undefined) await this.perform({ kind: 'close', view });
  }

  /** Counts a view no more that could not be opened. */
  forgetView(): void {
    this.views -= 1;
    if (this.#tasks.size === 0 && this.views === 0 && this.#end === undefined) this.#rest();
  }

  async terminate(): Promise<void> {
    this.#idle?.[Symbol.dispose]();
    await this.#worker.terminate();
  }

  #onMessage(message: FromWorker): void {
    this.#unansweredSince = undefined;
    const task = this.#tasks.get(message.id);
    if (task === undefined) return;
    if ('output' in message) task.taking = this.#pass(message.id, task, message.output);
    else if ('consumed' in message) task.feed?.consumed(message.consumed);
    else if ('result' in message) task.settle.resolve(message.result);
    else task.settle.reject(errorFrom(message.failure));
  }

  /** Its memory goes back to the thread, which waits for it. */
  async #pass(id: number, task: Task, chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      await task.take!(chunk);
      this.#taken += 1;
      if (this.#taken % CHUNKS_PER_COLLECTION === 0) collectYoung();
      this.#send({ id, taken: chunk.buffer }, [chunk.buffer]);
    } catch (error) {
      task.settle.reject(error);
      this.#send({ id, stop: true });
    }
  }

  #failAll(error: unknown): void {
    this.#end ??= error;
    this.#onGone();
    for (const task of this.#tasks.values()) task.settle.reject(error);
  }

  #rest(): void {
    this.#worker.unref();
    this.#idle = this.#background.after(IDLE_TIMEOUT_MS, 'end an idle thread for copies', {}, async () => {
      this.#onGone();
      this.#send({ leave: true });
      await once(this.#worker, 'exit');
    });
  }

  #send(message: ToWorker, memory: readonly ArrayBuffer[] = []): void {
    if ('start' in message) this.#unansweredSince ??= performance.now();
    this.#worker.postMessage(message, memory);
  }
}

function errorFrom({ message, kind, code, syscall, stack }: Failure): Error {
  if (kind !== undefined) return new EngineError(kind, message);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new EngineError('failed', 'no space left on device');
  }
  return Object.assign(new Error(message), { code, syscall, stack });
}
