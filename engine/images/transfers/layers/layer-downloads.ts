import { join } from 'node:path';

import type { Engine } from '../../../engine.ts';
import { RegistryError } from '../../../registry/errors.ts';
import type { Descriptor } from '../../../registry/manifests.ts';
import type { Repository } from '../../../registry/repository.ts';
import { Slots } from '../slots.ts';

type Needs = Pick<Engine, 'archives' | 'blobs' | 'clock'>;

export type DownloadEvent =
  | { kind: 'waiting' | 'verifying' | 'complete' }
  | { kind: 'bytes'; bytes: number }
  | { kind: 'retry'; seconds: number };
type Listener = (event: DownloadEvent) => void;

/** A checked file; its last user removes it. */
export type Downloaded = AsyncDisposable & { file: string };

type Download = {
  users: number;
  stop: AbortController;
  listeners: Set<Listener>;
  file: Promise<string>;
  last: DownloadEvent | undefined;
  ended: Promise<void>;
  release: PromiseWithResolvers<void>;
};

/** Downloads of layers from registries: at most three at a time, and each layer only once for all pulls. */
export class LayerDownloads {
  readonly #slots: Slots;
  readonly #underWay = new Map<string, Download>();

  constructor(limit = 3) {
    this.#slots = new Slots(limit);
  }

  /** The file of a layer, downloaded and checked. The download is cancelled when nobody waits for it any longer. */
  async get(
    engine: Needs,
    repository: Repository,
    descriptor: Descriptor,
    { signal, listener }: { signal: AbortSignal; listener: Listener },
  ): Promise<Downloaded> {
    for (;;) {
      signal.throwIfAborted();
      const joined = this.#underWay.get(descriptor.digest);
      const download = joined ?? this.#begin(engine, repository, descriptor);
      try {
        return await this.#use(download, descriptor.digest, signal, listener);
      } catch (error) {
        // A download that failed with another client's rights may succeed with this one's.
        if (joined === undefined || signal.aborted) throw error;
      }
    }
  }

  async #use(download: Download, digest: string, signal: AbortSignal, listener: Listener): Promise<Downloaded> {
    download.users += 1;
    download.listeners.add(listener);
    if (download.last !== undefined) listener(download.last);
    let isUsed = true;
    const leave = async (): Promise<void> => {
      if (!isUsed) return;
      isUsed = false;
      download.listeners.delete(listener);
      download.users -= 1;
      if (download.users > 0) return;
      if (this.#underWay.get(digest) === download) this.#underWay.delete(digest);
      download.stop.abort(new Error('nobody waits for the download any longer'));
      download.release.resolve();
      await download.ended;
    };
    const gone = Promise.withResolvers<never>();
    const onAbort = (): void => gone.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const file = await Promise.race([download.file, gone.promise]);
      return { file, [Symbol.asyncDispose]: leave };
    } catch (error) {
      await leave();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #begin(engine: Needs, repository: Repository, descriptor: Descriptor): Download {
    const file = Promise.withResolvers<string>();
    file.promise.catch(() => undefined); // its users get the error
    const release = Promise.withResolvers<void>();
    const download: Download = {
      users: 0,
      stop: new AbortController(),
      listeners: new Set(),
      file: file.promise,
      last: undefined,
      ended: Promise.resolve(),
      release,
    };
    this.#underWay.set(descriptor.digest, download);
    const work = async (): Promise<void> => {
      using _session = repository.session.hold();
      await using arrivals = engine.blobs.arrivals();
      const path = join(arrivals.path, 'layer');
      await this.#fetch(engine, repository, descriptor, { path, download });
      file.resolve(path);
      await release.promise;
    };
    download.ended = work().catch((error: unknown) => {
      if (this.#underWay.get(descriptor.digest) === download) this.#underWay.delete(descriptor.digest);
      file.reject(error);
    });
    return download;
  }

  async #fetch(
    engine: Needs,
    repository: Repository,
    descriptor: Descriptor,
    { path, download }: { path: string; download: Download },
  ): Promise<void> {
    const tell = (event: DownloadEvent): void => {
      download.last = event;
      for (const listener of download.listeners) listener(event);
    };
    const { signal } = download.stop;
    await Promise.resolve(); // until the first user listens
    if (this.#slots.areTaken) tell({ kind: 'waiting' });
    using _slot = await this.#slots.take(signal);
    const failed: { error?: unknown } = {};
    const stream = keepingFailure(
      repository.layer(descriptor, {
        clock: engine.clock,
        signal,
        onProgress: (bytes) => tell({ kind: 'bytes', bytes }),
        onRetry: (seconds) => tell({ kind: 'retry', seconds }),
      }),
      failed,
    );
    let received;
    try {
      received = await engine.archives.receive(stream, path);
    } catch (error) {
      throw failed.error ?? error;
    }
    tell({ kind: 'verifying' });
    if (received.digest !== descriptor.digest || received.sizeBytes !== descriptor.size) {
      throw new RegistryError(`filesystem layer verification failed for digest ${descriptor.digest}`);
    }
    tell({ kind: 'complete' });
  }
}

/** The receiver of a stream only learns that it broke off. */
async function* keepingFailure<T>(stream: AsyncIterable<T>, failed: { error?: unknown }): AsyncGenerator<T> {
  try {
    yield* stream;
  } catch (error) {
    failed.error = error;
    throw error;
  }
}
