import type { Clock } from '../../lib/clock.ts';
import type { Answer } from '../connection/direct.ts';
import { discard } from '../connection/read-body.ts';
import { isTransient, Retries } from '../connection/retry.ts';
import type { RegistrySession } from '../connection/session.ts';
import { isOfTokenServer, RegistryError } from '../errors.ts';
import type { GrowingFile } from './growing-file.ts';

/** The end of a request, and its waits after temporary failures. */
type Waiting = { signal: AbortSignal; onRetry?: (seconds: number) => void };

type Upload = Required<Waiting> & {
  clock: Clock;
  onProgress: (bytes: number) => void;
};

/** The address at which an upload continues, and the number of bytes received. */
type Place = { url: URL; at: number };

/** A repository of a registry, for writing. */
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

  /** The size of a blob; undefined for a missing one. */
  async sizeOf(digest: string, waiting: Waiting): Promise<number | undefined> {
    try {
      const answer = await this.#ask('HEAD', this.#address(`blobs/${digest}`), waiting);
      return Number(answer.headers['content-length'] ?? 0);
    } catch (error) {
      if (error instanceof RegistryError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Asks the registry to mount a blob from another of its repositories; false if it does not. */
  async mount(digest: string, from: string, waiting: Waiting): Promise<boolean> {
    const url = this.#address('blobs/uploads/');
    url.searchParams.set('mount', digest);
    url.searchParams.set('from', from);
    try {
      const answer = await this.#ask('POST', url, { ...waiting, scopes: [this.#scope, `repository:${from}:pull`] });
      if (answer.statusCode === 201) return true;
      await this.#giveUp(answer, url, waiting.signal);
      return false;
    } catch (error) {
      // The blob may not be readable there, or mounts are not supported: the upload then decides.
      if (error instanceof RegistryError && error.status >= 400 && error.status < 500) return false;
      throw error;
    }
  }

  /**
   * Sends a file while it grows. A broken upload continues where the registry has got to, or from the beginning if the
   * registry does not tell; only attempts without any progress count as failed.
   */
  async upload(file: GrowingFile, upload: Upload): Promise<void> {
    let place: Place | undefined;
    let reached = 0;
    const retries = new Retries(upload);
    for (;;) {
      place ??= { url: this.#next(await this.#begin(upload), this.#address('blobs/uploads/')), at: 0 };
      try {
        await this.#send(file, place, upload);
        return;
      } catch (error) {
        upload.signal.throwIfAborted();
        if (file.failure !== undefined) throw file.failure.error;
        if (!mayPass(error)) throw error;
        place = await this.#reached(place, upload);
        if ((place?.at ?? 0) > reached) retries.reset();
        reached = place?.at ?? reached;
        await retries.pause(error);
      }
    }
  }

  /** Sends a few bytes, such as a configuration. */
  async put(content: Buffer, digest: string, signal: AbortSignal): Promise<void> {
    const begun = await this.#begin({ signal });
    const url = this.#next(begun, this.#address('blobs/uploads/'));
    url.searchParams.set('digest', digest);
    await this.#ask('PUT', url, { signal, body: content, headers: { 'content-type': 'application/octet-stream' } });
  }

  /** Under a tag or a digest. */
  async putManifest(reference: string, manifest: Buffer, mediaType: string, signal: AbortSignal): Promise<void> {
    await this.#ask('PUT', this.#address(`manifests/${reference}`), {
      signal,
      body: manifest,
      headers: { 'content-type': mediaType },
    });
  }

  async #send(file: GrowingFile, { url, at }: Place, { signal, onRetry, onProgress }: Upload): Promise<void> {
    const headers = { 'content-type': 'application/octet-stream', ...(at > 0 && (await rest(file, at))) };
    const sent = await this.#ask('PATCH', url, { signal, body: file.read(at, onProgress), headers });
    const last = this.#next(sent, url);
    last.searchParams.set('digest', (await file.whole).digest);
    await this.#ask('PUT', last, { signal, onRetry, body: Buffer.alloc(0) });
  }

  /** The progress of an upload; undefined if the registry does not tell, or has dropped it. */
  async #reached({ url }: Place, { signal, onRetry }: Upload): Promise<Place | undefined> {
    try {
      const answer = await this.#ask('GET', url, { signal, onRetry });
      const end = Number(/^0-(\d+)$/.exec(answer.headers.range ?? '')?.[1] ?? 0);
      // `0-0` is one byte, or none.
      return end === 0 ? undefined : { url: this.#next(answer, url), at: end + 1 };
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      return undefined; // the upload begins anew
    }
  }

  async #begin({ signal, onRetry }: Waiting): Promise<Answer> {
    const waiting = { signal, ...(onRetry && { onRetry }) };
    return await this.#ask('POST', this.#address('blobs/uploads/'), { ...waiting, body: Buffer.alloc(0) });
  }

  /** The upload that the registry has begun instead of a mount. */
  async #giveUp(answer: Answer, url: URL, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask('DELETE', this.#next(answer, url), { signal });
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error; // the registry drops it by itself
    }
  }

  async #ask(
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: URL,
    {
      scopes = [this.#scope],
      ...ask
    }: Waiting & {
      scopes?: string[];
      body?: Buffer | AsyncIterable<Uint8Array>;
      headers?: Record<string, string>;
    },
  ): Promise<Answer> {
    const answer = await this.#session.ask(url, { method, scopes, ...ask });
    await discard(answer);
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

/** The headers of bytes that continue an upload. */
async function rest(file: GrowingFile, at: number): Promise<Record<string, string>> {
  const { size } = await file.whole;
  return { 'content-range': `${at}-${size - 1}`, 'content-length': String(size - at) };
}

/** Not after a final refusal of the registry or its token server. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof RegistryError) || isTransient(error)) return true;
  // A token may have expired in the middle.
  return error.status === 401 && !isOfTokenServer(error);
}
