import { createReadStream } from 'node:fs';

import type { Clock } from '../lib/clock.ts';
import { ATTEMPTS, delayOf, pause } from './connection/retry.ts';
import type { RegistrySession } from './connection/session.ts';
import type { Answer } from './connection/transport.ts';
import { RegistryError } from './errors.ts';
import { DOCKER_MANIFEST, type Descriptor } from './manifests.ts';

const READ_BYTES = 256 * 1024;

export type Upload = {
  clock: Clock;
  signal: AbortSignal;
  onProgress: (bytes: number) => void;
  onRetry: (seconds: number) => void;
};

/** A repository of a registry, to be written. */
export class PushTarget {
  readonly #session: RegistrySession;
  /** Without the host: `library/busybox`. */
  readonly path: string;
  readonly #scope: string;

  constructor(session: RegistrySession, path: string) {
    this.#session = session;
    this.path = path;
    this.#scope = `repository:${path}:pull,push`;
  }

  /** The size of a blob, if it is there. */
  async sizeOf(digest: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      const answer = await this.#ask('HEAD', this.#address(`blobs/${digest}`), { signal });
      return Number(answer.headers['content-length'] ?? 0);
    } catch (error) {
      if (error instanceof RegistryError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Has the registry take a blob over from another repository of its own; false if it does not. */
  async mount(digest: string, from: string, signal: AbortSignal): Promise<boolean> {
    const url = this.#address('blobs/uploads/');
    url.searchParams.set('mount', digest);
    url.searchParams.set('from', from);
    try {
      const answer = await this.#ask('POST', url, { signal, scopes: [this.#scope, `repository:${from}:pull`] });
      if (answer.statusCode === 201) return true;
      await this.#giveUp(answer, url, signal);
      return false;
    } catch (error) {
      // It may not be read there, or mounts are not known: the upload has the last word.
      if (error instanceof RegistryError && error.status >= 400 && error.status < 500) return false;
      throw error;
    }
  }

  /** Sends a file, from its beginning again after a cut. */
  async upload(file: string, { digest, size }: Descriptor, upload: Upload): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#send({ digest, size }, (onProgress) => read(file, onProgress), upload);
        return;
      } catch (error) {
        upload.signal.throwIfAborted();
        const mayPass =
          !(error instanceof RegistryError) || error.status === 0 || error.status === 401 || error.status >= 500;
        if (!mayPass || attempt === ATTEMPTS || isOfToken(error)) throw error;
        const delay = delayOf(attempt, undefined, upload.clock.now());
        upload.onRetry(Math.ceil(delay / 1000));
        await pause(upload.clock, delay, upload.signal);
      }
    }
  }

  /** Sends a few bytes, such as a configuration. */
  async put(content: Buffer, digest: string, signal: AbortSignal): Promise<void> {
    const begun = await this.#begin(signal);
    const url = this.#next(begun, this.#address('blobs/uploads/'));
    url.searchParams.set('digest', digest);
    await this.#ask('PUT', url, { signal, body: content, headers: { 'content-type': 'application/octet-stream' } });
  }

  async putManifest(tag: string, manifest: Buffer, signal: AbortSignal): Promise<void> {
    await this.#ask('PUT', this.#address(`manifests/${tag}`), {
      signal,
      body: manifest,
      headers: { 'content-type': DOCKER_MANIFEST },
    });
  }

  async #send(
    { digest, size }: { digest: string; size: number },
    open: (onProgress: (bytes: number) => void) => AsyncIterable<Uint8Array>,
    { signal, onProgress }: Upload,
  ): Promise<void> {
    const first = this.#address('blobs/uploads/');
    const place = this.#next(await this.#begin(signal), first);
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(size) };
    const sent = await this.#ask('PATCH', place, { signal, body: open(onProgress), headers });
    const last = this.#next(sent, place);
    last.searchParams.set('digest', digest);
    await this.#ask('PUT', last, { signal, body: Buffer.alloc(0) });
  }

  async #begin(signal: AbortSignal): Promise<Answer> {
    return await this.#ask('POST', this.#address('blobs/uploads/'), { signal, body: Buffer.alloc(0) });
  }

  /** An upload that the registry has begun in place of a mount. */
  async #giveUp(answer: Answer, url: URL, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask('DELETE', this.#next(answer, url), { signal });
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error; // the registry forgets it by itself
    }
  }

  async #ask(
    method: 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: URL,
    {
      scopes = [this.#scope],
      ...ask
    }: {
      signal: AbortSignal;
      scopes?: string[];
      body?: Buffer | AsyncIterable<Uint8Array>;
      headers?: Record<string, string>;
    },
  ): Promise<Answer> {
    const answer = await this.#session.ask(url, { method, scopes, ...ask });
    await answer.body.dump();
    return answer;
  }

  #next({ headers }: Answer, before: URL): URL {
    const { location } = headers;
    if (typeof location === 'string' && URL.canParse(location, before)) return new URL(location, before);
    throw new RegistryError('the registry does not say where the upload goes');
  }

  #address(rest: string): URL {
    return this.#session.address(`/v2/${this.path}/${rest}`);
  }
}

function isOfToken(error: unknown): boolean {
  return error instanceof RegistryError && error.code.startsWith('TOKEN_');
}

async function* read(file: string, onProgress: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of createReadStream(file, { highWaterMark: READ_BYTES })) {
    yield piece as Buffer;
    bytes += (piece as Buffer).length;
    onProgress(bytes);
  }
}
